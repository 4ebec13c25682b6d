package wsconn

import "sync/atomic"

// A gate is a lock whose waiting can be one case of a select, and which costs one atomic step while nobody waits.
type gate struct {
	state atomic.Int32  // open, shut, or shut with somebody who may wait
	wake  chan struct{} // room for one
}

const (
	gateOpen = iota
	gateShut
	gateAwaited
)

func newGate() gate { return gate{wake: make(chan struct{}, 1)} }

// try shuts the gate if it is open.
func (g *gate) try() bool { return g.state.CompareAndSwap(gateOpen, gateShut) }

// claim shuts the gate if it is open; otherwise wake tells when to claim again.
func (g *gate) claim() bool { return g.state.Swap(gateAwaited) == gateOpen }

func (g *gate) lock() {
	if g.try() {
		return
	}
	for !g.claim() {
		<-g.wake
	}
}

func (g *gate) unlock() {
	if g.state.Swap(gateOpen) == gateAwaited {
		select {
		case g.wake <- struct{}{}:
		default: // whoever takes the one that is there claims again
		}
	}
}

package wsconn

import "sync/atomic"

// A gate is a lock whose waiting can be one case of a select, and which costs one atomic step while nobody waits.
// It is handed to whoever has waited longest: a busy writer must not keep a close frame or a pong from leaving.
type gate struct {
	state atomic.Int32  // open, shut, or awaited: shut, and handed on through wake
	wake  chan struct{} // room for one. Who receives from it has the gate
}

const (
	gateOpen = iota
	gateShut
	gateAwaited
)

func newGate() gate { return gate{wake: make(chan struct{}, 1)} }

// try shuts the gate if it is open.
func (g *gate) try() bool {
	if g.state.CompareAndSwap(gateOpen, gateShut) {
		return true
	}
	select {
	case <-g.wake: // nobody was there to take it, or who waited gave up
		return true
	default:
		return false
	}
}

// ask is for who is about to wait. It reports whether the gate is the caller's at once; otherwise it is by
// receiving from wake.
func (g *gate) ask() bool { return g.state.Swap(gateAwaited) == gateOpen }

func (g *gate) lock() {
	if !g.try() && !g.ask() {
		<-g.wake
	}
}

// unlock is the owner's.
func (g *gate) unlock() {
	if !g.state.CompareAndSwap(gateShut, gateOpen) {
		g.wake <- struct{}{} // only the owner sends, so there is room
	}
}

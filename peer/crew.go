package peer

import (
	"runtime"
	"sync"
	"time"
)

const (
	crewKept = 64          // goroutines that wait for work at most
	crewIdle = time.Second // after so long without any they end
	crewTurn = 32          // requests one of them runs before it lets others have the processor
)

// crew runs the requests of a connection. Every request gets a goroutine at
// once, so that a handler may wait for whatever it likes; but one goroutine runs
// many requests, one after the other, as long as they are quick. What makes sure
// of both is that while requests wait, a goroutine without one is on its way.
//
// Goroutines are started when needed, are kept while the connection is busy,
// for their stacks have grown to what handlers need, and end when it is idle.
type crew struct {
	mu     sync.Mutex
	ready  []*incoming // from first on
	first  int
	coming bool      // a goroutine without a request is on its way to ready
	parked int       // goroutines that wait on wake
	wake   chan bool // true: there is work; false: leave
	used   bool      // since the timer was set
	armed  bool
	timer  *time.Timer // nil until needed
	over   bool        // the connection has ended: nobody parks any more
}

// launch has r run. The reader calls it, and others; it never waits.
func (c *Conn) launch(r *incoming) {
	w := &c.crew
	w.mu.Lock()
	if w.first > len(w.ready)/2 && len(w.ready) == cap(w.ready) {
		n := copy(w.ready, w.ready[w.first:])
		clear(w.ready[n:])
		w.ready, w.first = w.ready[:n], 0
	}
	w.ready = append(w.ready, r)
	w.used = true
	c.callOne()
}

// callOne makes sure that somebody is on the way. It is called with w.mu held
// and unlocks it.
func (c *Conn) callOne() {
	w := &c.crew
	switch {
	case w.coming:
		w.mu.Unlock()
	case w.parked > 0:
		w.coming = true
		w.parked--
		w.mu.Unlock()
		w.wake <- true
	default:
		w.coming = true
		w.mu.Unlock()
		c.spawn(c.work)
	}
}

// work is one goroutine of the crew. A handler may end it (runtime.Goexit): where
// requests wait, another is on its way already.
func (c *Conn) work() {
	w := &c.crew
	ran := 0
	w.mu.Lock()
	w.coming = false
	for {
		if w.first == len(w.ready) {
			if !c.park() {
				return
			}
			continue
		}
		r := w.ready[w.first]
		w.ready[w.first] = nil
		if w.first++; w.first == len(w.ready) {
			w.ready, w.first = w.ready[:0], 0
			w.mu.Unlock()
		} else {
			c.callOne()
		}
		if ran++; ran%crewTurn == 0 {
			// Otherwise, while requests keep coming, who waits for this processor
			// waits until the runtime takes it away, ten milliseconds on.
			runtime.Gosched()
		}
		if r.isNotification() {
			c.runNotifications(r)
		} else {
			c.run(r)
		}
		w.mu.Lock()
	}
}

// park waits for work, and reports whether there is any. It is called with w.mu
// held and returns with it held if so.
func (c *Conn) park() bool {
	w := &c.crew
	if w.over || w.parked >= crewKept {
		w.mu.Unlock()
		return false
	}
	if w.wake == nil {
		w.wake = make(chan bool, crewKept)
	}
	w.parked++
	w.watch(c)
	w.mu.Unlock()
	if !<-w.wake {
		return false
	}
	w.mu.Lock()
	w.coming = false
	return true
}

// arm notes that the writer waits, which counts as work that was done.
func (w *crew) arm(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = true
	w.watch(c)
}

// watch sets the timer. w.mu is held.
func (w *crew) watch(c *Conn) {
	switch {
	case w.armed || w.over:
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(crewIdle, c.dismissIdle)
	default:
		w.timer.Reset(crewIdle)
	}
	w.armed = true
}

// dismissIdle ends the goroutines that wait, the writer among them, where there
// was nothing to do for a while.
func (c *Conn) dismissIdle() {
	w := &c.crew
	w.mu.Lock()
	if w.used && !w.over {
		w.used = false
		w.timer.Reset(crewIdle)
		w.mu.Unlock()
		return
	}
	w.armed = false
	w.dismiss()
	w.mu.Unlock()
	c.out.dismiss()
}

// dismiss ends the goroutines that wait. w.mu is held.
func (w *crew) dismiss() {
	for ; w.parked > 0; w.parked-- {
		w.wake <- false // it has room for all of them
	}
	if w.first == len(w.ready) {
		w.ready = nil
	}
}

// end lets nobody wait any longer; requests that are ready still run.
func (w *crew) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.dismiss()
}

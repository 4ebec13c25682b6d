package peer

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/duetrpc/duet/pending"
)

// orderSlow is how long a wait for a notification may last before it is logged.
const orderSlow = time.Second

// order runs notifications one at a time, in the order they arrived, and makes
// calls and answers wait for those that arrived before them. Guarded by Conn.mu
// where nothing else is said.
type order struct {
	arrived uint64        // notifications queued; written by the reader, which may read it without mu
	handled atomic.Uint64 // notifications that returned or gave up their place; written under mu

	queue []*incoming  // notifications that wait for their turn
	place *incoming    // the notification whose turn it is, or nil
	held  []*incoming  // calls that wait, in the order they arrived
	waits []*orderWait // callers whose answers wait
	bytes int64        // of those answers

	dropped bool // the connection has ended and queued notifications never run

	timer  *time.Timer // for the first of held; nil until needed
	armed  bool
	logged *incoming // the notification that was named as slow last
}

// orderWait is a caller that waits until barrier notifications are handled.
type orderWait struct {
	barrier uint64
	done    chan struct{}
	err     error // set before done is closed where they never will be
}

// barrier is what an answer that arrives now has to wait for, 0 for nothing.
// The reader calls it.
func (o *order) barrier() uint64 {
	if o.arrived == o.handled.Load() {
		return 0
	}
	return o.arrived
}

// enqueue adds a notification. It returns it if its turn is now.
func (o *order) enqueue(r *incoming) *incoming {
	o.arrived++
	if o.place == nil {
		o.place = r
		return r
	}
	o.queue = append(o.queue, r)
	return nil
}

// runs reports whether r is of the notification whose turn it is.
func (o *order) runs(r *requestContext) bool { return o.place != nil && o.place.ctx == r }

// yielding reports whether the notification whose turn it is waits for an own
// call, so that nothing may wait for it.
func (o *order) yielding() bool { return o.place != nil && o.place.ctx.waits > 0 }

// next ends the turn of the current notification and begins the next one's,
// which it returns.
func (o *order) next(c *Conn) *incoming {
	handled := o.handled.Add(1)
	o.place, o.logged = nil, nil
	if len(o.queue) > 0 {
		o.place = o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
	}
	for len(o.held) > 0 && o.held[0].barrier <= handled {
		o.release(c)
	}
	o.waits = slices.DeleteFunc(o.waits, func(w *orderWait) bool {
		if w.barrier > handled {
			return false
		}
		close(w.done)
		return true
	})
	return o.place
}

// release starts the first call that is held.
func (o *order) release(c *Conn) {
	r := o.held[0]
	o.held[0] = nil
	o.held = o.held[1:]
	c.launch(r)
}

// end is called once, when the connection ends with cause. It returns the calls
// that will not run. What notifications came before the other end closed still
// run; where this end did they do not, and answers behind them fail.
func (o *order) end(cause error, local bool) []*incoming {
	if o.timer != nil {
		o.timer.Stop()
	}
	dropped := o.held
	o.held = nil
	if local {
		dropped = append(dropped, o.queue...)
		o.queue, o.dropped = nil, true
		for _, w := range o.waits {
			w.err = cause
			close(w.done)
		}
		o.waits = nil
	}
	return dropped
}

// hold keeps back a call that has to wait for notifications. c.mu is held.
func (c *Conn) hold(r *incoming) bool {
	o := &c.order
	switch {
	case c.opts.NoBarrier || o.arrived == o.handled.Load():
		return false
	case o.yielding():
		r.ctx.early = true
		return false
	}
	r.barrier, r.since = o.arrived, time.Now()
	o.held = append(o.held, r)
	c.armHeld(min(orderSlow, c.opts.Limits.OrderWait))
	return true
}

// armHeld has the first held call looked at after d. c.mu is held.
func (c *Conn) armHeld(d time.Duration) {
	o := &c.order
	switch {
	case o.armed:
	case o.timer == nil:
		o.timer = time.AfterFunc(d, func() { c.spawn(c.lookAtHeld) })
	default:
		o.timer.Reset(d)
	}
	o.armed = true
}

// lookAtHeld names the notification that calls wait for, and starts those that
// waited long enough.
func (c *Conn) lookAtHeld() {
	c.mu.Lock()
	o := &c.order
	o.armed = false
	now := time.Now()
	var given []Event
	slow := ""
	for len(o.held) > 0 && !c.ended {
		r := o.held[0]
		waited := now.Sub(r.since)
		if waited >= c.opts.Limits.OrderWait {
			given = append(given, Event{Kind: OrderWait, Method: o.place.name(), After: waited})
			r.ctx.early = true
			o.release(c)
			continue
		}
		left := c.opts.Limits.OrderWait - waited
		if waited < orderSlow {
			left = min(left, orderSlow-waited)
		} else if o.place != o.logged {
			o.logged = o.place
			slow = o.place.name()
		}
		c.armHeld(left)
		break
	}
	c.mu.Unlock()
	c.logSlow(slow)
	for _, ev := range given {
		c.events.add(ev)
	}
}

// name is the method of a notification that others wait for.
func (r *incoming) name() string {
	if r == nil {
		return otherMethod
	}
	return r.entry.known()
}

// logSlow names the method of a notification that others wait for; "" is none.
func (c *Conn) logSlow(method string) {
	if method != "" {
		c.log(slog.LevelWarn, "duet: calls or answers wait for a notification handler",
			slog.String("method", method), slog.Duration("after", orderSlow))
	}
}

// enterWait notes that the notification r waits for an own call: no call waits
// for r meanwhile, since the other end may have to be answered first.
func (c *Conn) enterWait(r *requestContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.waits++
	if c.order.runs(r) && !c.ended {
		for len(c.order.held) > 0 {
			c.order.held[0].ctx.early = true
			c.order.release(c)
		}
	}
}

func (c *Conn) leaveWait(r *requestContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.waits--
}

// yields notes that the notification inside waits for the answer to slot, until
// the reader settles it or the caller gives up, whichever comes first: a call
// that arrives behind the answer waits for inside again.
func (c *Conn) yields(inside *requestContext, slot *pending.Slot[reply]) {
	c.mu.Lock()
	if c.yielders == nil {
		c.yielders = make(map[int64]*requestContext)
	}
	c.yielders[slot.ID] = inside
	c.yielding.Add(1)
	c.mu.Unlock()
	inside.c.enterWait(inside)
}

// yieldsNot ends what yields began. It does nothing the second time.
func (c *Conn) yieldsNot(id int64) {
	if c.yielding.Load() == 0 {
		return
	}
	c.mu.Lock()
	inside := c.yielders[id]
	if inside != nil {
		delete(c.yielders, id)
		c.yielding.Add(-1)
	}
	c.mu.Unlock()
	if inside != nil {
		inside.c.leaveWait(inside)
	}
}

// exempt reports whether the answer to a call made with ctx waits for no
// notification: one made in the handler of a notification, which would wait for
// itself; and one made in the handler of a call that started early, since what
// that waits for may in turn wait for it.
func (c *Conn) exempt(ctx context.Context) bool {
	r := requestOf(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs(r) && (r.early || r.notification)
}

// runs reports whether r is a request of this connection whose handler has not
// returned. A context may outlive its handler.
func (c *Conn) runs(r *requestContext) bool { return r != nil && r.c == c && !r.isOver() }

// awaitOrder makes an answer of so many bytes wait until barrier notifications
// are handled, at most OrderWait, and not where answers that wait hold
// InFlightBytes. It returns the error of ctx if that ends first, and the cause of
// the connection's end if they never will be.
func (c *Conn) awaitOrder(ctx context.Context, barrier uint64, bytes int) error {
	o := &c.order
	size := int64(bytes)
	if o.handled.Load() >= barrier || c.opts.NoBarrier || c.exempt(ctx) {
		return nil
	}
	w := &orderWait{barrier: barrier, done: make(chan struct{})}
	c.mu.Lock()
	switch {
	case o.handled.Load() >= barrier:
		c.mu.Unlock()
		return nil
	case o.dropped:
		defer c.mu.Unlock()
		return c.cause
	case o.bytes > 0 && o.bytes+size > c.opts.Limits.InFlightBytes:
		method := o.place.name()
		c.mu.Unlock()
		c.events.add(Event{Kind: OrderWait, Method: method,
			Err: &LimitError{What: "InFlightBytes", Limit: c.opts.Limits.InFlightBytes}})
		return nil
	}
	o.bytes += size
	o.waits = append(o.waits, w)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.bytes -= size
		o.waits = slices.DeleteFunc(o.waits, func(x *orderWait) bool { return x == w })
	}()

	began := time.Now()
	timer := time.NewTimer(min(orderSlow, c.opts.Limits.OrderWait))
	defer timer.Stop()
	for {
		select {
		case <-w.done:
			return w.err
		case <-ctx.Done():
			return contextError(ctx)
		case <-timer.C:
		}
		c.mu.Lock()
		method, slow := o.place.name(), ""
		if o.place != o.logged {
			slow = method
		}
		o.logged = o.place
		c.mu.Unlock()
		waited := time.Since(began)
		if waited >= c.opts.Limits.OrderWait {
			c.events.add(Event{Kind: OrderWait, Method: method, After: waited})
			return nil
		}
		c.logSlow(slow)
		timer.Reset(c.opts.Limits.OrderWait - waited)
	}
}

package peer

import (
	"github.com/duetrpc/duet/codec"
)

// notified queues a notification, which then has buf. The reader calls it.
func (c *Conn) notified(m *codec.Message, buf *buffer) (passed bool) {
	f, known := c.controls.find(m.Method, m.Params, &c.params)
	if f != nil {
		c.guard("Control", func() { f(&c.params) })
		c.params.Reset(nil) // it must not keep the message alive
		return false
	}
	e := c.entryOf(m.Method)
	if known && e == nil {
		// What comes for a call that is over is no mistake of anybody.
		c.events.add(Event{Kind: UnknownToken, Method: otherMethod})
		return false
	}
	if !c.takes(m) {
		c.events.add(Event{Kind: RefusedNotification, Method: e.known(), Err: errEarly})
		return false
	}
	lim := &c.opts.Limits
	c.stats.request(e, true)
	r := c.newIncoming(m, e, len(buf.b)) // before the lock, which others want

	c.mu.Lock()
	s := &c.served
	var over *LimitError
	switch {
	case c.ended:
		c.mu.Unlock()
		return false
	case c.drains():
		c.mu.Unlock()
		c.events.add(Event{Kind: RefusedNotification, Method: e.known(), Err: ErrShutdown})
		return false
	case s.notes >= lim.Notifications:
		over = &LimitError{What: "Notifications", Limit: int64(lim.Notifications)}
	case s.noteBytes+r.size > lim.NotificationBytes && s.notes > 0:
		over = &LimitError{What: "NotificationBytes", Limit: lim.NotificationBytes}
	}
	if over != nil {
		c.mu.Unlock()
		c.events.add(Event{Kind: OverLimit, Method: e.known(), Err: over})
		c.end(over)
		return false
	}
	r.buf = buf
	s.notes++
	s.noteBytes += r.size
	s.running.Add(1)
	first := c.order.enqueue(r)
	c.mu.Unlock()
	if first != nil {
		c.launch(first)
	}
	return true
}

// runNotifications runs notifications as long as they come.
func (c *Conn) runNotifications(r *incoming) {
	for r != nil {
		r = c.runNotification(r)
	}
}

// runNotification runs one notification and returns the next whose turn it is.
func (c *Conn) runNotification(r *incoming) (next *incoming) {
	err, returned := errGone, false
	defer func() {
		if v := recover(); v != nil {
			err, returned = c.panicked(r.name(), v), true
		}
		next = c.notificationDone(r, err)
		if !returned && next != nil { // this goroutine ends (runtime.Goexit)
			c.launch(next)
		}
	}()
	if h := c.framed(r); h != nil {
		var f frame
		if f, _, err = h.serveFrame(r.ctx, &r.req); f != nil {
			f.free()
		}
	} else {
		req := r.req
		_, err = c.opts.Handler.ServeRPC(r.ctx, &req)
	}
	returned = true
	return nil
}

// notificationDone frees the place of a notification that returned.
func (c *Conn) notificationDone(r *incoming, err error) (next *incoming) {
	r.ctx.handlerReturned()
	if err != nil {
		c.events.add(Event{Kind: RefusedNotification, Method: r.entry.known(), Err: forLog(err)})
		c.stats.failed(r.entry)
	}
	c.mu.Lock()
	if c.order.place == r {
		next = c.order.next(c)
	}
	c.served.freeNotification(r)
	c.mu.Unlock()
	r.buf.release()
	c.finished()
	c.buffers.putRequest(r)
	return next
}

// freeNotification gives back what a notification took of the bounds. Conn.mu is
// held.
func (s *served) freeNotification(r *incoming) {
	r.ctx.in = nil
	s.notes--
	s.noteBytes -= r.size
}

// giveUpPlace ends the turn of r before it returns.
func (c *Conn) giveUpPlace(r *requestContext) {
	c.mu.Lock()
	if !c.order.runs(r) {
		c.mu.Unlock()
		return
	}
	next := c.order.next(c)
	c.mu.Unlock()
	if next != nil {
		c.launch(next)
	}
}

package peer

import (
	"runtime"
)

// One owner writes at a time, and outbox.writing says that there is one. It is the
// writer, a goroutine that is started when needed, waits while the connection is
// busy, and ends with the crew; or, where nothing else is in flight and the
// transport can write without waiting, whoever sends.

// writeInline writes m; o.writing makes the caller the one owner of the
// transport. It reports false where m is still to be queued, before all others.
func (c *Conn) writeInline(m *outgoingMessage) bool {
	o := &c.out
	n := len(m.buf.b)
	if m.leaving = m.leave(); m.leaving {
		took, flushed := c.tryOnce(m.buf.b)
		if !took {
			m.stay()
			return false
		}
		c.number(m)
		if !flushed {
			m.taken = true
			return false
		}
	}
	c.left(m)
	o.room.give(m.room)
	o.mu.Lock()
	o.count(m, n)
	o.writing = false
	if len(o.queue)+len(o.cancels) > 0 {
		c.startWriter()
		return true
	}
	o.mu.Unlock()
	c.checkDrained()
	return true
}

// tryOnce is TryWrite of the transport.
func (c *Conn) tryOnce(msg []byte) (took, flushed bool) {
	defer func() {
		if v := recover(); v != nil {
			c.end(&writeError{c.panicked("Transport.TryWrite", v)})
			took, flushed = true, false
		}
	}()
	return c.tryWrite(msg)
}

// startWriter makes sure that the writer runs. It is called with o.mu held and
// unlocks it.
func (c *Conn) startWriter() {
	o := &c.out
	start := !o.writing
	o.writing = true
	wake := start && o.parked
	o.parked = o.parked && !wake
	o.mu.Unlock()
	switch {
	case wake:
		o.wake <- true
	case start && !c.spawn(c.write):
		o.close()
	}
}

// write is the writer: with writeInline, the one owner of the transport.
func (c *Conn) write() {
	o := &c.out
	yielded := false
	o.mu.Lock()
	for {
		n := len(o.queue) + len(o.cancels)
		if n == 0 {
			if !c.parkWriter() {
				return
			}
			continue
		}
		if !yielded && c.active.Load()+c.served.running.Load() > int64(n) {
			// Those that are about to send get their turn first, so that all of it
			// goes out by one write.
			yielded = true
			o.mu.Unlock()
			runtime.Gosched()
			o.mu.Lock()
			continue
		}
		yielded = false
		if c.acks != nil { // what waits for a way has not left: it can still be given up
			o.mu.Unlock()
			if err := c.acks.Ready(c.ctx); err != nil {
				c.end(err)
				return
			}
			o.mu.Lock()
		}
		queue, cancels := o.queue, o.cancels
		o.queue, o.cancels = o.spare[:0], nil
		o.mu.Unlock()
		if err := c.writeAll(queue, cancels); err != nil {
			if c.acks == nil { // otherwise it is the end of more than a Write
				err = &writeError{err}
			}
			c.end(err)
			return
		}
		var room, kept int64
		for i := range queue {
			c.left(&queue[i])
			queue[i].release()
			room += queue[i].room
			kept += queue[i].kept
		}
		clear(queue)
		o.room.give(room)
		o.mu.Lock()
		o.reserved -= kept
		o.spare = queue
	}
}

// parkWriter waits until there is something to write, and reports whether there
// is. It is called with o.mu held and returns with it held if so.
func (c *Conn) parkWriter() bool {
	o := &c.out
	o.writing = false
	if o.closed {
		o.mu.Unlock()
		return false
	}
	if o.wake == nil {
		o.wake = make(chan bool, 1)
	}
	o.parked = true
	o.mu.Unlock()
	c.checkDrained()
	c.crew.arm(c)
	if !<-o.wake {
		return false
	}
	o.mu.Lock()
	return true
}

// dismiss ends the writer if it waits, and what it kept for the next time.
func (o *outbox) dismiss() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parked && !o.writing { // otherwise somebody is about to wake it
		o.parked = false
		o.wake <- false
		o.queue, o.spare, o.msgs = nil, nil, nil
	}
}

// writeAll hands what was queued to the transport.
func (c *Conn) writeAll(queue []outgoingMessage, cancels []ownCancel) error {
	msgs := c.out.msgs[:0]
	flush := false
	for i := range queue {
		m := &queue[i]
		switch {
		case m.taken:
			flush = true
		case m.leaving || m.leave():
			c.number(m)
			msgs = append(msgs, m.buf.b)
		}
	}
	c.out.number += uint64(len(cancels))
	for _, own := range cancels {
		msgs = append(msgs, c.opts.Profile.Cancel.message(&c.rules, own))
	}
	var err error
	if len(msgs) > 0 || flush {
		err = c.writeOnce(msgs)
	}
	clear(msgs)
	c.out.msgs = msgs
	return err
}

// writeOnce is Transport.Write; one that panics is broken, and ends no more than
// the connection.
func (c *Conn) writeOnce(msgs [][]byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked("Transport.Write", v)
		}
	}()
	return c.transport.Write(c.ctx, msgs...)
}

// writeError is the cause of a connection whose transport failed to write.
type writeError struct{ err error }

func (e *writeError) Error() string { return "peer: write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

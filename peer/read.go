package peer

import (
	"errors"
	"fmt"
	"time"

	"github.com/duetrpc/duet/codec"
)

// reply is what settles an own call.
type reply struct {
	buf     *buffer // holds result; released by the caller
	result  []byte
	err     *Error
	broken  string // why the answer is none
	ended   error  // why there will be none, or nil
	barrier uint64 // notifications that arrived before it, 0 if all are handled
}

// readOnce is Transport.Read; one that panics is broken, and ends no more than
// the connection. The buffer has no bytes where there is an error.
func (c *Conn) readOnce() (buf *buffer, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked("Transport.Read", v)
		}
	}()
	if c.readGrow == nil {
		buf = c.buffers.get(0)
		buf.b, err = c.transport.Read(c.ctx, buf.b)
		return buf, err
	}
	b, err := c.readGrow(c.ctx, nil, c.grow)
	buf, c.reading = c.reading, nil
	if buf == nil { // an empty message needs no room
		buf = c.buffers.get(0)
	}
	if err == nil {
		buf.b = b
	}
	return buf, err
}

// growReading gives the message that is being read room for n bytes more. What has
// been read is b, which lies in c.reading.
func (c *Conn) growReading(b []byte, n int) []byte {
	if c.reading == nil {
		c.reading = c.buffers.get(n)
	} else {
		c.reading.b = b
		c.reading.move(n)
	}
	return c.reading.b
}

// read is the reader: it blocks in Transport.Read and nowhere else. After the
// end of the connection it goes on until the transport is closed, since the
// orderly end of a WebSocket needs somebody who reads.
func (c *Conn) read() {
	var env codec.Envelope
	for {
		buf, err := c.readOnce()
		if err != nil {
			c.end(err)
			return
		}
		n := len(buf.b)
		if int64(n) > c.opts.Limits.MessageBytes {
			c.end(&LimitError{What: "MessageBytes", Limit: c.opts.Limits.MessageBytes, Got: int64(n)})
		}
		if c.ctx.Err() != nil || !c.receive(buf, &env) {
			buf.release()
		}
		if n > maxKept {
			env = codec.Envelope{} // an idle end keeps nothing large
		}
	}
}

// maxKept is the largest message, in bytes, after which the reader keeps its table
// of members.
const maxKept = 4 << 10

// receive takes one envelope apart. It reports whether it passed buf on, whose
// release is the caller's otherwise.
func (c *Conn) receive(buf *buffer, env *codec.Envelope) (passed bool) {
	c.stats.received(len(buf.b))
	err := env.Decode(buf.b, &c.rules)
	switch {
	case errors.Is(err, codec.ErrUTF8):
		c.end(&utf8Error{err})
	case err != nil:
		c.refuse(Event{Kind: RefusedMessage, Method: otherMethod, Err: err}, nil)
		c.reply(codec.NullID(), &Error{Code: codec.ParseError, Message: "parse error"}, nil)
	case env.Fault != codec.NoFault:
		c.refuseBatch(env.Fault.String())
	case env.Batch:
		c.receiveBatch(env, buf)
	default:
		return c.handle(&env.Messages[0], buf, nil)
	}
	return false
}

// handle does what has to be done about one message. batch is nil outside one. It
// reports whether it passed a reference to buf on.
func (c *Conn) handle(m *codec.Message, buf *buffer, batch *batchReply) (passed bool) {
	if m.Kind != codec.Notification && c.yield != nil {
		c.yield() // somebody goes on by it, and should before the next ones come
	}
	switch m.Kind {
	case codec.Call:
		return c.admit(m, buf, batch)
	case codec.Notification:
		return c.notified(m, buf)
	case codec.Response:
		if c.settle(m.ID, reply{buf: buf, result: m.Result, err: m.Error}) {
			return true
		}
		c.unsettled(m)
	case codec.BadNotification:
		c.refuse(Event{Kind: RefusedNotification, Method: c.entryOf(m.Method).known(), Err: faulty(m.Fault)}, batch)
	case codec.BadResponse:
		ev := Event{Kind: BrokenResponse, Method: otherMethod, Err: faulty(m.Fault)}
		if m.Fault == codec.IDMissing {
			c.events.add(ev) // some protocols report errors that way, which is no offence
		} else {
			c.refuse(ev, batch)
		}
		return c.settle(m.ID, reply{buf: buf, broken: m.Fault.String()})
	case codec.Bare:
		const why = codec.ResultMissing
		if c.settle(m.ID, reply{buf: buf, broken: why.String()}) {
			c.refuse(Event{Kind: BrokenResponse, Method: otherMethod, Err: faulty(why)}, batch)
			batch.skip(codec.NullID())
			return true
		}
		c.invalid(codec.NullID(), codec.MethodMissing, batch)
	default:
		c.invalid(m.ID, m.Fault, batch)
	}
	return false
}

func faulty(f codec.Fault) error { return errors.New("peer: " + f.String()) }

// settle passes an answer on to the caller that waits for id, and reports whether
// there was one.
func (c *Conn) settle(id codec.ID, value reply) bool {
	n, ok := id.Int64()
	if !ok {
		return false
	}
	value.barrier = c.order.barrier()
	c.yieldsNot(n)
	return c.calls.Settle(n, value)
}

// unsettled counts an answer that nobody waits for. Nobody answers it either:
// two strict peers would go on for ever.
func (c *Conn) unsettled(m *codec.Message) {
	if n, ok := m.ID.Int64(); ok {
		if call, late := c.calls.Late(n); late {
			ev := Event{Kind: LateResponse, Method: call.Method, Note: call.Note,
				After: time.Since(call.Began), Late: time.Since(call.Ended)}
			if m.Error != nil {
				ev.Err = fmt.Errorf("peer: the other end answered with error %d", m.Error.Code)
			}
			c.events.add(ev)
			return
		}
	}
	ev := Event{Kind: UnknownResponse, Method: otherMethod}
	if m.Error != nil {
		// With id null it says that the other end could not read us.
		ev.Err = fmt.Errorf("peer: the other end reports error %d for no known call", m.Error.Code)
	}
	c.events.add(ev)
}

// invalid answers what is neither a request nor a response.
func (c *Conn) invalid(id codec.ID, fault codec.Fault, batch *batchReply) {
	c.refuse(Event{Kind: RefusedMessage, Method: otherMethod, Err: faulty(fault)}, batch)
	c.reply(id, &Error{Code: codec.InvalidRequest, Message: "invalid request: " + fault.String()}, batch)
}

// reply sends an answer of the reader's own.
func (c *Conn) reply(id codec.ID, e *Error, batch *batchReply) {
	buf := c.buffers.get(0)
	buf.b = codec.AppendError(buf.b, &c.rules, id, e)
	if batch != nil {
		batch.put(buf.b, id, nil)
		buf.release()
		return
	}
	c.pushReserved(buf)
}

// Refused messages end a connection when there are refusedMost of them within
// refusedWithin.
const (
	refusedMost   = 100
	refusedWithin = 10 * time.Second
)

// refusals remembers when the last refusedMost messages were refused.
type refusals struct {
	times []time.Time // a ring; nil until the first
	next  int
}

// refuse counts a message that was refused; a batch counts once.
func (c *Conn) refuse(ev Event, batch *batchReply) {
	c.events.add(ev)
	if batch != nil {
		if batch.refused {
			return
		}
		batch.refused = true
	}
	r := &c.refused
	now := time.Now()
	if r.times == nil {
		r.times = make([]time.Time, refusedMost-1)
	}
	oldest := r.times[r.next]
	r.times[r.next] = now
	r.next = (r.next + 1) % len(r.times)
	if !oldest.IsZero() && now.Sub(oldest) < refusedWithin {
		c.end(&RefusedError{Count: refusedMost, Within: refusedWithin})
	}
}

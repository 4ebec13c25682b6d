package peer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/pending"
)

// outbox is the queue of what is encoded and not yet written. Its bytes are
// bounded: room is taken before a message is queued, by waiting, and given back
// when it is written. The reader may not wait; its answers have a room of their
// own, and when that is full the connection ends.
//
// Who writes takes all there is and writes it at once: see writer.go.
type outbox struct {
	room room
	size atomic.Int64 // about what messages measure, in bytes

	mu       sync.Mutex
	queue    []outgoingMessage
	cancels  []ownCancel // those that are still to be told
	reserved int64       // bytes of the reader's answers in queue
	reserve  int64       // the most of them
	writing  bool        // somebody writes, and will look at queue again
	parked   bool        // the writer waits on wake
	wake     chan bool
	closed   bool

	sentMessages, sentBytes uint64 // of own requests, for Stats

	// The writer's.
	spare  []outgoingMessage
	msgs   [][]byte
	number uint64 // of the last message that the transport was given
}

// outgoingMessage is one envelope to write.
type outgoingMessage struct {
	buf     *buffer
	slot    *pending.Slot[reply]   // the own call in it, held while queued
	slots   []*pending.Slot[reply] // or those in an array
	room    int64                  // taken from outbox.room
	own     bool                   // requests of this end
	kept    int64                  // taken from outbox.reserve
	leaving bool                   // leave was called
	taken   bool                   // the transport has the bytes, and is to be flushed
}

func (o *outbox) init(bytes int64) {
	o.reserve = bytes / 4
	o.room.most = bytes - o.reserve
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.queue, o.cancels = true, nil, nil
	if o.parked {
		o.parked = false
		o.wake <- false
	}
}

// expected is the size that the next message may have, from those before.
func (o *outbox) expected() int { return int(o.size.Load()) }

// expect learns that a message had n bytes. A larger one counts at once, smaller
// ones one after the other.
func (o *outbox) expect(n int) {
	size := o.size.Load()
	if next := max(int64(n), size-(size-int64(n))/8); next != size {
		o.size.Store(next)
	}
}

// count counts m, of n bytes, for Stats. o.mu is held.
func (o *outbox) count(m *outgoingMessage, n int) {
	if m.own {
		o.sentMessages++
		o.sentBytes += uint64(n)
	}
}

// sent returns how many envelopes of own requests were queued, and their bytes.
func (o *outbox) sent() (messages, bytes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sentMessages, o.sentBytes
}

// idle reports whether everything is written.
func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.writing
}

// acquire waits for room for n bytes, until ctx or the connection ends.
func (c *Conn) acquire(ctx context.Context, n int) (int64, error) {
	w := c.out.room.weight(n)
	if c.out.room.try(w) || c.out.room.wait(ctx, c.ctx.Done(), w) {
		return w, nil
	}
	if cause := c.endCause(); cause != nil {
		return 0, cause
	}
	return 0, contextError(ctx)
}

// encodeWithRoom encodes into m and takes the room for it, waiting until ctx or
// the connection ends. Nothing is kept encoded while it waits, but encoded again
// after: what the other end does not read must not pile up here. The result that
// an answer to r will be encoded from counts against InFlightBytes meanwhile.
func (c *Conn) encodeWithRoom(ctx context.Context, m *outgoingMessage, t *text) error {
	if err := c.encodeInto(m, t); err != nil {
		return err
	}
	n := len(m.buf.b)
	c.out.expect(n)
	if w := c.out.room.weight(n); c.out.room.try(w) {
		m.room = w
		return nil
	}
	m.buf.release()
	m.buf = nil
	if t.r != nil {
		c.mu.Lock()
		c.served.bytes += int64(n)
		t.r.size += int64(n)
		c.mu.Unlock()
	}
	var err error
	if m.room, err = c.acquire(ctx, n); err != nil {
		return err
	}
	defer func() {
		if m.buf == nil { // it failed, or user code ended the goroutine
			c.out.room.give(m.room)
		}
	}()
	return c.encodeInto(m, t)
}

// encodeInto gives m a buffer with t in it.
func (c *Conn) encodeInto(m *outgoingMessage, t *text) error {
	buf := c.buffers.get(c.out.expected())
	if err := c.encode(buf, t); err != nil {
		buf.release()
		return err
	}
	buf.trim()
	m.buf = buf
	return nil
}

// awaitRoom waits until nobody else waits for room.
func (c *Conn) awaitRoom(r *incoming) error {
	if c.out.room.waiting.Load() == 0 {
		return nil
	}
	room, err := c.acquire(r.ctx, 1)
	c.out.room.give(room)
	return err
}

// push queues m, whose room is taken. It fails when the connection has ended.
// Where nothing else is expected to follow soon, alone is true, and m is written
// here and now if that needs no waiting, which spares the way through the writer.
func (c *Conn) push(m *outgoingMessage, alone bool) error {
	o := &c.out
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return c.endCause()
	}
	tried := alone && !o.writing && c.tryWrite != nil
	if tried {
		o.writing = true
		o.mu.Unlock()
		if c.writeInline(m) {
			return nil
		}
		o.mu.Lock()
		o.writing = false // what follows starts the writer
		if o.closed {
			o.mu.Unlock()
			return c.endCause()
		}
	}
	o.count(m, len(m.buf.b))
	m.hold()
	if tried { // what others queued meanwhile comes after
		o.queue = slices.Insert(o.queue, 0, *m)
	} else {
		o.queue = append(o.queue, *m)
	}
	c.startWriter()
	return nil
}

// pushReserved queues an answer of the reader, or ends the connection: an
// answer that others wait for is never dropped in silence.
func (c *Conn) pushReserved(buf *buffer) {
	o := &c.out
	n := int64(len(buf.b))
	o.mu.Lock()
	switch {
	case o.closed:
		o.mu.Unlock()
		buf.release()
	case o.reserved > 0 && o.reserved+n > o.reserve:
		o.mu.Unlock()
		buf.release()
		err := &LimitError{What: "QueueBytes", Limit: o.reserve + o.room.most}
		c.events.add(Event{Kind: OverLimit, Method: otherMethod, Err: err})
		c.end(err)
	default:
		o.reserved += n
		o.queue = append(o.queue, outgoingMessage{buf: buf, kept: n})
		c.startWriter()
	}
}

// pushCancel lets the writer tell the other end that a call was given up. It never
// waits and needs no bound of its own: it is for calls whose bytes have left or are
// in the queue, and while nothing is written no more of them leave.
func (c *Conn) pushCancel(own ownCancel) {
	o := &c.out
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	o.cancels = append(o.cancels, own)
	c.startWriter()
}

// leave marks the call in m as about to leave. It reports false where nobody
// waits for it any more: then m stays. An array leaves in any case.
func (m *outgoingMessage) leave() bool { return m.slot == nil || m.slot.Leave() }

// stay takes leave back: the transport has not taken m.
func (m *outgoingMessage) stay() {
	m.leaving = false
	if m.slot != nil {
		m.slot.Stay()
	}
}

// number counts m, which the transport is given, and tells the calls in it.
func (c *Conn) number(m *outgoingMessage) {
	c.out.number++
	if c.acks == nil {
		return
	}
	if m.slot != nil {
		m.slot.Number.Store(c.out.number)
	}
	for _, s := range m.slots {
		s.Number.Store(c.out.number)
	}
}

// left marks the calls in m as sent, unless it is for the other end to say that it has
// them, and gives the buffer back.
func (c *Conn) left(m *outgoingMessage) {
	if c.acks == nil {
		if m.slot != nil {
			m.slot.Left()
		}
		for _, s := range m.slots {
			s.Left()
		}
	}
	m.buf.release()
	m.buf = nil
}

// sentState is how far the request of an own call got.
func (c *Conn) sentState(slot *pending.Slot[reply]) pending.State {
	state := slot.State()
	if state == pending.MaybeSent && c.acks != nil {
		if n := slot.Number.Load(); n > 0 && n <= c.acks.Acknowledged() {
			return pending.Sent
		}
	}
	return state
}

// hold keeps the slots of m, which is about to be queued, from being used again.
func (m *outgoingMessage) hold() {
	if m.slot != nil {
		m.slot.Hold()
	}
	for _, s := range m.slots {
		s.Hold()
	}
}

func (m *outgoingMessage) release() {
	if m.slot != nil {
		m.slot.Release()
	}
	for _, s := range m.slots {
		s.Release()
	}
}

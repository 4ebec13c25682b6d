package peer

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/pending"
)

// outbox is the queue of what is encoded and not yet written. Its bytes are
// bounded: room is taken before a message is queued, by waiting, and given back
// when it is written. The reader may not wait; its answers have a room of their
// own, and when that is full the connection ends.
//
// The writer is a goroutine that takes all there is and writes it at once. It is
// started when needed, waits while the connection is busy, and ends with the crew.
type outbox struct {
	room    *semaphore.Weighted
	most    int64        // what room holds
	waiting atomic.Int64 // those that wait for room
	size    atomic.Int64 // about what messages measure, in bytes

	mu       sync.Mutex
	queue    []outgoingMessage
	cancels  []int64 // own calls whose end is still to be told
	reserved int64   // bytes of the reader's answers in queue
	reserve  int64   // the most of them
	writing  bool    // somebody writes, and will look at queue again
	parked   bool    // the writer waits on wake
	wake     chan bool
	closed   bool

	spare []outgoingMessage // the writer's
	msgs  [][]byte          // the writer's
}

// outgoingMessage is one envelope to write.
type outgoingMessage struct {
	buf     *buffer
	slot    *pending.Slot[reply]   // the own call in it, held while queued
	slots   []*pending.Slot[reply] // or those in an array
	room    int64                  // taken from outbox.room
	kept    int64                  // taken from outbox.reserve
	leaving bool                   // leave was called
	taken   bool                   // the transport has the bytes, and is to be flushed
}

func (o *outbox) init(bytes int64) {
	o.reserve = bytes / 4
	o.most = bytes - o.reserve
	o.room = semaphore.NewWeighted(o.most)
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed, o.queue, o.cancels = true, nil, nil
	o.mu.Unlock()
	o.dismiss()
}

// expected is the size that the next message may have, from those before.
func (o *outbox) expected() int { return int(o.size.Load()) }

// expect learns that a message had n bytes. A larger one counts at once, smaller
// ones one after the other.
func (o *outbox) expect(n int) {
	size := o.size.Load()
	o.size.Store(max(int64(n), size-(size-int64(n))/8))
}

// idle reports whether everything is written.
func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.writing
}

// weight is the room that n bytes take: a message larger than the whole room
// passes alone.
func (o *outbox) weight(n int) int64 { return min(int64(n), o.most) }

// acquire waits for room for n bytes, until ctx or the connection ends.
func (c *Conn) acquire(ctx context.Context, n int) (int64, error) {
	w := c.out.weight(n)
	if c.out.room.TryAcquire(w) {
		return w, nil
	}
	c.out.waiting.Add(1)
	defer c.out.waiting.Add(-1)
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	if err := c.out.room.Acquire(wait, w); err != nil {
		if cause := c.endCause(); cause != nil {
			return 0, cause
		}
		return 0, contextError(ctx)
	}
	return w, nil
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
	if w := c.out.weight(n); c.out.room.TryAcquire(w) {
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
			c.out.room.Release(m.room)
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
	if c.out.waiting.Load() == 0 {
		return nil
	}
	room, err := c.acquire(r.ctx, 1)
	c.out.room.Release(room)
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
	if alone && !o.writing && c.tryWrite != nil {
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
		m.hold()
		o.queue = slices.Insert(o.queue, 0, *m)
	} else {
		m.hold()
		o.queue = append(o.queue, *m)
	}
	c.startWriter()
	return nil
}

// writeInline writes m; o.writing makes the caller the one owner of the
// transport. It reports false where m is still to be queued, before all others.
func (c *Conn) writeInline(m *outgoingMessage) bool {
	o := &c.out
	m.leaving = true
	if m.leave() {
		took, flushed := c.tryOnce(m.buf.b)
		if !took || !flushed {
			m.taken = took
			return false
		}
	}
	m.left()
	o.room.Release(m.room)
	o.mu.Lock()
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
		err := &LimitError{What: "QueueBytes", Limit: o.reserve + o.most}
		c.events.add(Event{Kind: OverLimit, Method: otherMethod, Err: err})
		c.end(err)
	default:
		o.reserved += n
		o.queue = append(o.queue, outgoingMessage{buf: buf, kept: n})
		c.startWriter()
	}
}

// pushCancel lets the writer tell the other end that the call id was given up.
// It never waits and needs no bound of its own: it is for calls whose bytes have
// left or are in the queue, eight bytes each, and while nothing is written no
// more of them leave.
func (c *Conn) pushCancel(id int64) {
	o := &c.out
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	o.cancels = append(o.cancels, id)
	c.startWriter()
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
		if !yielded && c.active.Load() > int64(n) {
			// Those that are about to send get their turn first, so that all of it
			// goes out by one write.
			yielded = true
			o.mu.Unlock()
			runtime.Gosched()
			o.mu.Lock()
			continue
		}
		yielded = false
		queue, cancels := o.queue, o.cancels
		o.queue, o.cancels = o.spare[:0], nil
		o.mu.Unlock()
		if err := c.writeAll(queue, cancels); err != nil {
			c.end(&writeError{err})
			return
		}
		var room, kept int64
		for i := range queue {
			queue[i].left()
			queue[i].release()
			room += queue[i].room
			kept += queue[i].kept
		}
		clear(queue)
		o.room.Release(room)
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
func (c *Conn) writeAll(queue []outgoingMessage, cancels []int64) error {
	msgs := c.out.msgs[:0]
	flush := false
	for i := range queue {
		m := &queue[i]
		switch {
		case m.taken:
			flush = true
		case m.leaving || m.leave():
			msgs = append(msgs, m.buf.b)
		}
	}
	for _, id := range cancels {
		msgs = append(msgs, c.opts.Profile.Cancel.message(id))
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

// leave marks the call in m as about to leave. It reports false where nobody
// waits for it any more: then m stays. An array leaves in any case.
func (m *outgoingMessage) leave() bool { return m.slot == nil || m.slot.Leave() }

// left marks the calls in m as sent and gives the buffer back.
func (m *outgoingMessage) left() {
	if m.slot != nil {
		m.slot.Left()
	}
	for _, s := range m.slots {
		s.Left()
	}
	m.buf.release()
	m.buf = nil
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

// writeError is the cause of a connection whose transport failed to write.
type writeError struct{ err error }

func (e *writeError) Error() string { return "peer: write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// message encodes the notification that gives up the call id.
func (c Cancel) message(id int64) []byte {
	params := append(codec.AppendString([]byte{'{'}, c.field()), ':')
	params = append(codec.NumberID(id).AppendTo(params), '}')
	return codec.AppendNotification(nil, c.method(), params)
}

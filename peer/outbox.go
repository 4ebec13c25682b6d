package peer

import (
	"context"
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
// The writer is a goroutine that lives as long as the queue is not empty.
type outbox struct {
	room    *semaphore.Weighted
	most    int64        // what room holds
	waiting atomic.Int64 // those that wait for room

	mu       sync.Mutex
	queue    []outgoingMessage
	cancels  []int64 // own calls whose end is still to be told
	reserved int64   // bytes of the reader's answers in queue
	reserve  int64   // the most of them
	writing  bool    // the writer's goroutine runs
	closed   bool
}

// outgoingMessage is one envelope to write.
type outgoingMessage struct {
	buf   *buffer
	slot  *pending.Slot[reply]   // the own call in it
	slots []*pending.Slot[reply] // or those in an array
	room  int64                  // taken from outbox.room
	kept  int64                  // taken from outbox.reserve
}

func (o *outbox) init(bytes int64) {
	o.reserve = bytes / 4
	o.most = bytes - o.reserve
	o.room = semaphore.NewWeighted(o.most)
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.queue, o.cancels = true, nil, nil
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
func (c *Conn) encodeWithRoom(ctx context.Context, m *outgoingMessage, r *incoming, encode func(dst []byte) ([]byte, error)) error {
	for {
		buf := c.buffers.get()
		var err error
		if buf.b, err = encode(buf.b); err != nil {
			buf.release()
			c.out.room.Release(m.room)
			return err
		}
		n := len(buf.b)
		if w := c.out.weight(n); m.room == 0 && c.out.room.TryAcquire(w) {
			m.room = w
		}
		if m.room > 0 {
			m.buf = buf
			return nil
		}
		buf.release()
		if r != nil {
			c.mu.Lock()
			c.served.bytes += int64(n)
			r.size += int64(n)
			c.mu.Unlock()
		}
		if m.room, err = c.acquire(ctx, n); err != nil {
			return err
		}
	}
}

// awaitRoom waits until nobody else waits for room.
func (c *Conn) awaitRoom(ctx context.Context) error {
	if c.out.waiting.Load() == 0 {
		return nil
	}
	room, err := c.acquire(ctx, 1)
	c.out.room.Release(room)
	return err
}

// push queues m, whose room is taken. It fails when the connection has ended.
func (c *Conn) push(m outgoingMessage) error {
	o := &c.out
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return c.endCause()
	}
	o.queue = append(o.queue, m)
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
	start := !c.out.writing
	c.out.writing = true
	c.out.mu.Unlock()
	if start && !c.spawn(c.write) {
		c.out.close()
	}
}

// write is the one owner of Transport.Write.
func (c *Conn) write() {
	o := &c.out
	var msgs [][]byte
	for {
		o.mu.Lock()
		queue, cancels := o.queue, o.cancels
		o.queue, o.cancels = nil, nil
		o.writing = len(queue)+len(cancels) > 0
		o.mu.Unlock()
		if len(queue)+len(cancels) == 0 {
			c.checkDrained()
			return
		}
		msgs = msgs[:0]
		for i := range queue {
			if queue[i].leave() {
				msgs = append(msgs, queue[i].buf.b)
			}
		}
		for _, id := range cancels {
			msgs = append(msgs, c.opts.Profile.Cancel.message(id))
		}
		if len(msgs) > 0 {
			if err := c.writeOnce(msgs); err != nil {
				c.end(&writeError{err})
				return
			}
		}
		var room, kept int64
		for i := range queue {
			queue[i].left()
			room += queue[i].room
			kept += queue[i].kept
		}
		o.mu.Lock()
		o.reserved -= kept
		o.mu.Unlock()
		o.room.Release(room)
	}
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

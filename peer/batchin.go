package peer

import (
	"errors"
	"sync"

	"github.com/duetrpc/duet/codec"
)

// batchReply gathers the answers to one received array. The array is answered
// as one, when its last call is (JSON-RPC 2.0 section 6), so its calls keep
// their slots until then. A nil *batchReply stands for a message outside a batch.
type batchReply struct {
	c       *Conn
	bytes   int  // of the array; counted once, with its first call
	refused bool // a member of it was refused; used by the reader

	mu      sync.Mutex
	buf     *buffer
	missing int         // members still to be answered, and one while the reader is at it
	rest    int64       // bytes that the shortest answers to those take
	calls   []*incoming // admitted
}

// Shortest answers: the error a result is replaced with where it does not fit,
// without its id.
const shortestAnswer = int64(len(`{"jsonrpc":"2.0","id":,"error":{"code":-32603,"message":"internal error"}},`))

// leastAnswer is the room that some answer to m needs at least, 0 if it has none.
func leastAnswer(m *codec.Message) int64 {
	switch m.Kind {
	case codec.Call, codec.Invalid:
		return leastFor(m.ID)
	case codec.Bare:
		return leastFor(codec.NullID())
	}
	return 0
}

func leastFor(id codec.ID) int64 { return shortestAnswer + int64(max(len(id.String()), len("null"))) }

// receiveBatch takes an array in.
func (c *Conn) receiveBatch(env *codec.Envelope, buf *buffer) {
	b := &batchReply{c: c, bytes: len(buf.b), missing: 1, rest: 2}
	for i := range env.Messages {
		if least := leastAnswer(&env.Messages[i]); least > 0 {
			b.missing++
			b.rest += least
		}
	}
	if b.rest > c.opts.Limits.MessageBytes {
		c.refuseBatch("its answer would not fit into a message")
		return
	}
	b.buf = c.buffers.get(0)
	for i := range env.Messages {
		m, of := &env.Messages[i], buf
		if m.Kind == codec.Notification {
			of = c.ownBuffer(m)
		} else {
			of.retain()
		}
		if !c.handle(m, of, b) {
			of.release()
		}
	}
	switch last := b.done(); {
	case last && len(b.calls) > 0:
		c.spawn(b.send) // the reader does not wait for room
	case last && len(b.buf.b) > 0:
		b.buf.b = append(b.buf.b, ']')
		c.pushReserved(b.buf)
	}
}

// ownBuffer moves what is kept of m to a buffer of its own: a notification in the
// queue must not keep a whole array in memory.
func (c *Conn) ownBuffer(m *codec.Message) *buffer {
	text := m.Text
	if !c.opts.TopLevelTrace {
		text = nil
	}
	n := len(m.Params)
	own := c.buffers.get(n + len(text))
	own.b = append(append(own.b, m.Params...), text...)
	if m.Params != nil {
		m.Params = own.b[:n:n]
	}
	m.Text = own.b[n:]
	return own
}

// refuseBatch answers an array that is refused before anything in it runs.
func (c *Conn) refuseBatch(why string) {
	c.refuse(Event{Kind: RefusedMessage, Method: otherMethod, Err: errors.New("peer: array refused: " + why)}, nil)
	c.reply(codec.NullID(), &Error{Code: codec.InvalidRequest, Message: "invalid request: " + why}, nil)
}

// unclaimed is the number of bytes that the next call of the array is counted
// with.
func (b *batchReply) unclaimed() int {
	if len(b.calls) > 0 {
		return 0
	}
	return b.bytes
}

// claim makes r a call of the array. The reader calls it, under Conn.mu.
func (b *batchReply) claim(r *incoming) {
	if b != nil {
		b.mu.Lock()
		b.calls = append(b.calls, r)
		b.mu.Unlock()
	}
}

// put adds an answer; r is nil for one of the reader's own. Whoever adds the
// last one sends the array; that is never the reader, which counts as missing
// until it is through.
func (b *batchReply) put(answer []byte, id codec.ID, r *incoming) {
	most := b.c.opts.Limits.MessageBytes
	b.mu.Lock()
	b.rest -= leastFor(id)
	fits := int64(len(b.buf.b)+len(answer)+1)+b.rest <= most
	if !fits { // that entry alone fails
		answer = codec.AppendError(nil, &b.c.rules, id, &Error{Code: codec.InternalError, Message: "internal error"})
	}
	sep := byte(',')
	if len(b.buf.b) == 0 {
		sep = '['
	}
	b.buf.b = append(append(b.buf.b, sep), answer...)
	b.mu.Unlock()
	if !fits {
		b.c.events.add(Event{Kind: OverLimit, Method: r.name(), Err: &LimitError{What: "MessageBytes", Limit: most}})
	}
	if r != nil {
		b.c.mu.Lock()
		b.c.served.bytes += int64(len(answer))
		r.size += int64(len(answer))
		b.c.mu.Unlock()
	}
	if b.done() {
		b.send()
	}
}

// skip leaves a member, whose answer would have had id, without one.
func (b *batchReply) skip(id codec.ID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.rest -= leastFor(id)
	b.mu.Unlock()
	if b.done() {
		b.send()
	}
}

// done counts one member as answered and reports whether it was the last.
func (b *batchReply) done() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing--
	return b.missing == 0
}

// send sends the array, frees the places of its calls, and waits for room
// before. An array without entries is not sent.
func (b *batchReply) send() {
	c := b.c
	m := outgoingMessage{buf: b.buf}
	var err error
	if len(b.buf.b) > 0 {
		b.buf.b = append(b.buf.b, ']')
		m.room, err = c.acquire(c.ctx, len(b.buf.b))
	}
	for _, r := range b.calls {
		c.free(r)
	}
	if err == nil && len(b.buf.b) > 0 {
		err = c.push(&m, false)
	}
	for _, r := range b.calls {
		if err != nil {
			c.events.add(Event{Kind: DroppedAnswer, Method: r.name(), Err: err})
		}
		c.answered(r, err)
	}
}

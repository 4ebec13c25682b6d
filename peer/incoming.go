package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/duetrpc/duet/codec"
)

// incoming is an admitted request, from its arrival until its answer is queued.
type incoming struct {
	req    Request
	c      *Conn
	id     codec.ID // absent in a notification
	ctx    *requestContext
	buf    *buffer // holds ID and Params; released when the request is done
	size   int64   // counted against the bounds
	entry  *entry  // nil for a method that is not registered
	batch  *batchReply
	text   []byte // the whole message, with Options.TopLevelTrace; else nil
	exempt bool   // from cancellation
	timed  bool   // its caller said how long it waits

	cancelled atomic.Bool // by the other end
	reporter  atomic.Pointer[Reporter]

	// Guarded by Conn.mu.
	after   []func(error) // given to Answered
	barrier uint64        // a call: the notifications that arrived before it
	since   time.Time     // a call: when it began to wait for them
}

// served is what the other end makes this end hold. Guarded by Conn.mu, save what
// is atomic.
type served struct {
	calls     received
	inFlight  int
	bytes     int64
	notes     int // notifications queued or running
	noteBytes int64
	running   atomic.Int64 // requests of either kind that are not finished
}

// newIncoming makes the request of m, which has size bytes of its own.
func (c *Conn) newIncoming(m *codec.Message, e *entry, size int) *incoming {
	r := c.buffers.getRequest()
	r.req = Request{Params: m.Params, Conn: c}
	r.c, r.size, r.entry = c, int64(size), e
	r.ctx = &requestContext{c: c, in: r, notification: m.Kind != codec.Call}
	if m.Kind == codec.Call {
		r.id, r.req.ID = m.ID, m.ID
		if c.opts.Deadlines {
			var left time.Duration
			if left, r.timed = timeoutOf(m.Params); r.timed {
				r.ctx.bound(left)
			}
		}
	}
	if c.opts.TopLevelTrace {
		r.text = m.Text
	}
	if e != nil {
		r.req.Method = e.name
	} else {
		r.req.Method = string(m.Method)
		r.size += int64(len(m.Method)) // held besides the message
	}
	r.exempt = c.opts.Profile.Cancel.exempt(r.req.Method)
	return r
}

func (c *Conn) entryOf(method []byte) *entry {
	if r, ok := c.opts.Handler.(lookuper); ok {
		return r.lookup(method)
	}
	return nil
}

// admit takes a call in, which then has buf, or answers it with why not. The reader
// calls it.
func (c *Conn) admit(m *codec.Message, buf *buffer, batch *batchReply) (passed bool) {
	e := c.entryOf(m.Method)
	size := len(buf.b)
	if batch != nil {
		size = batch.unclaimed()
	}
	lim := &c.opts.Limits
	c.stats.request(e, false)
	r := c.newIncoming(m, e, size) // before the lock, which others want
	refusal := c.refusal(m)

	c.mu.Lock()
	s := &c.served
	var over *LimitError
	inUse := false
	switch {
	case c.ended:
		c.mu.Unlock()
		batch.skip(m.ID)
		return false
	case c.drains():
		refusal = &Error{Code: c.opts.Profile.shuttingDown(), Message: "shutting down"}
	case refusal != nil:
	case s.calls.find(m.ID) != nil:
		inUse = true
		refusal = &Error{Code: codec.InvalidRequest, Message: "invalid request: id is in use by a call in flight"}
	case s.inFlight >= lim.InFlight:
		over = &LimitError{What: "InFlight", Limit: int64(lim.InFlight)}
	case size > 0 && s.bytes > 0 && s.bytes+int64(size) > lim.InFlightBytes:
		over = &LimitError{What: "InFlightBytes", Limit: lim.InFlightBytes}
	}
	if over != nil {
		refusal = &Error{Code: c.opts.Profile.overloaded(), Message: "overloaded"}
	}
	if refusal != nil {
		c.mu.Unlock()
		switch {
		case over != nil:
			c.events.add(Event{Kind: OverLimit, Method: e.known(), Err: over})
		case inUse:
			c.refuse(Event{Kind: RefusedMessage, Method: e.known(), Err: errors.New("peer: id is in use by a call in flight")}, batch)
		}
		c.reply(m.ID, refusal, batch)
		r.ctx.handlerReturned() // its deadline must not be waited for
		c.buffers.putRequest(r)
		return false
	}
	r.buf, r.batch = buf, batch
	batch.claim(r)
	s.calls.add(r)
	c.begins(r)
	s.inFlight++
	s.running.Add(1)
	s.bytes += r.size
	held := c.hold(r)
	c.mu.Unlock()
	if !held {
		c.launch(r)
	}
	return true
}

// run runs a call and answers it, whatever its handler does.
func (c *Conn) run(r *incoming) {
	var result any
	err := errGone
	var frame frame
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked(r.name(), v)
			frame = nil // what it holds may be anybody's
		}
		c.answer(r, result, err)
		if frame != nil {
			frame.free()
		}
	}()
	// While answers wait for room no more are made, so that results do not pile up
	// either.
	if err = c.awaitRoom(r); err != nil {
		return
	}
	err = errGone
	if c.ctx.Err() != nil || r.gone() || r.late() {
		err = context.Cause(r.ctx) // before it could start
		return
	}
	if h := c.framed(r); h != nil {
		frame, result, err = h.serveFrame(r.ctx, &r.req)
		return
	}
	req := r.req // the handler's, which may change it and keep it
	result, err = c.opts.Handler.ServeRPC(r.ctx, &req)
}

// gone reports whether r was cancelled.
func (r *incoming) gone() bool {
	if !r.cancelled.Load() {
		return false
	}
	var cause *CancelError
	return errors.As(context.Cause(r.ctx), &cause)
}

// late reports whether its caller does not wait any longer, and said so before.
func (r *incoming) late() bool { return r.timed && r.ctx.Err() == context.DeadlineExceeded }

// isNotification reports whether r is a notification, whatever became of req.
func (r *incoming) isNotification() bool { return r.id.IsZero() }

// errGone is the error of a handler that left its goroutine (runtime.Goexit).
var errGone = errors.New("peer: handler did not return")

// panicked logs a panic of user code, which is no more than an internal error to
// the other end.
func (c *Conn) panicked(method string, v any) error {
	c.log(slog.LevelError, "duet: panic",
		slog.String("method", method),
		slog.String("panic", fmt.Sprint(v)),
		slog.String("stack", string(debug.Stack())))
	return errPanic
}

var errPanic = errors.New("peer: panic, logged with its stack")

// answer sends the outcome of a call and frees its place. The place is freed
// before the answer can reach the other end, which may then use the id, and the
// slot, again; and not before there is room for the answer, so that answers
// nobody reads keep their slots.
func (c *Conn) answer(r *incoming, result any, err error) {
	answered := false
	defer func() {
		// User code ended this goroutine while the result was encoded
		// (runtime.Goexit): the answer there must be is given in another.
		if !answered {
			c.spawn(func() { c.answer(r, nil, errGone) })
		}
	}()
	c.answerOnce(&text{r: r, value: result}, err)
	answered = true
}

func (c *Conn) answerOnce(t *text, err error) {
	r := t.r
	cancelled := r.cancelled.Load()
	givenUp := cancelled || r.late()
	r.ctx.handlerReturned()
	silent := cancelled && c.opts.Profile.Cancel.Silent
	if p := r.reporter.Load(); p != nil {
		p.finish(silent)
	}
	if silent {
		c.ends(r, false)
		if r.batch != nil {
			c.mu.Lock()
			r.ctx.in = nil // otherwise done when its place is freed
			c.mu.Unlock()
			c.tell(r, context.Canceled)
			r.batch.skip(r.id)
			return
		}
		c.free(r)
		c.answered(r, context.Canceled)
		return
	}
	if err != nil {
		c.fail(t, err, givenUp)
	}
	if r.batch != nil {
		buf := c.buffers.get(0)
		c.encodeAnswer(buf, t)
		c.ends(r, t.err == nil)
		r.batch.put(buf.b, r.id, r)
		buf.release()
		return
	}
	var m outgoingMessage
	err = c.encodeWithRoom(c.ctx, &m, t)
	c.ends(r, t.err == nil)
	alone := c.free(r)
	if err == nil {
		err = c.push(&m, alone)
	}
	if err != nil {
		c.events.add(Event{Kind: DroppedAnswer, Method: r.name(), Err: err})
	}
	c.answered(r, err)
	c.buffers.putRequest(r)
}

// free gives back what a call took of the bounds. It reports whether nothing else
// is in flight.
func (c *Conn) free(r *incoming) (alone bool) {
	c.mu.Lock()
	s := &c.served
	r.ctx.in = nil
	s.calls.remove(r)
	s.inFlight--
	s.bytes -= r.size
	c.mu.Unlock()
	r.buf.release()
	return c.active.Load() == 0 && s.running.Load() == 1
}

// answered ends the life of a call, whose answer is queued unless there is an error.
func (c *Conn) answered(r *incoming, err error) {
	c.tell(r, err)
	c.finished()
}

// finished ends the life of a request for Shutdown.
func (c *Conn) finished() {
	c.served.running.Add(-1)
	c.checkDrained()
}

// drop ends a request that will never run, since the connection has ended.
func (c *Conn) drop(r *incoming) {
	r.ctx.handlerReturned()
	ev := Event{Kind: DroppedAnswer, Method: r.name(), Err: c.endCause()}
	switch {
	case r.isNotification():
		ev.Kind = RefusedNotification
		c.mu.Lock()
		c.served.freeNotification(r)
		c.mu.Unlock()
		r.buf.release()
		c.finished()
	case r.batch != nil:
		r.batch.skip(r.id) // the last of the array frees them all
	default:
		c.free(r)
		c.answered(r, ev.Err)
	}
	c.events.add(ev)
}

package peer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// requestContext is the context of a handler. It holds what may be asked of a
// request after its handler has returned, since a context may outlive that: the
// request itself is used again.
//
// Most handlers never wait for its end, so what it takes to tell of it is made
// when somebody first asks.
type requestContext struct {
	c            *Conn
	notification bool
	early        bool        // a call: it started before the notifications that arrived earlier were handled; guarded by Conn.mu
	waits        int32       // a notification: own calls that wait in it; guarded by Conn.mu
	returned     atomic.Bool // its handler has

	mu    sync.Mutex
	asked *askedContext // nil until needed
	cause error         // set when it has ended
}

// askedContext ends with a requestContext, or with the connection.
type askedContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

type requestKey struct{}

// ask returns the context that others may wait for.
func (r *requestContext) ask() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		ctx, cancel := context.WithCancelCause(r.c.handlers)
		r.asked = &askedContext{ctx, cancel}
		if r.cause != nil {
			cancel(r.cause)
		}
	}
	return r.asked.Context
}

// end ends the context. The first cause stays.
func (r *requestContext) end(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		r.cause = cause
	}
	if r.asked != nil {
		r.asked.cancel(r.cause)
	}
}

// Deadline implements [context.Context].
func (r *requestContext) Deadline() (time.Time, bool) { return r.c.handlers.Deadline() }

// Done implements [context.Context].
func (r *requestContext) Done() <-chan struct{} { return r.ask().Done() }

// Err implements [context.Context].
func (r *requestContext) Err() error {
	r.mu.Lock()
	asked, cause := r.asked, r.cause
	r.mu.Unlock()
	switch {
	case asked != nil:
		return asked.Err()
	case cause != nil:
		return context.Canceled
	}
	return r.c.handlers.Err()
}

// Value implements [context.Context]. The keys by which package context finds the
// contexts it made are among those it does not know.
func (r *requestContext) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return r
	}
	return r.ask().Value(key)
}

// requestOf is the context of the request whose handler ctx belongs to, or nil.
func requestOf(ctx context.Context) *requestContext {
	r, _ := ctx.Value(requestKey{}).(*requestContext)
	return r
}

// ConnFrom returns the connection a handler's request came on. It reports false
// for a context that is not a handler's. To call back use CallerFrom, which
// passes through Options.Outgoing.
func ConnFrom(ctx context.Context) (*Conn, bool) {
	if r := requestOf(ctx); r != nil {
		return r.c, true
	}
	return nil, false
}

// CallerFrom returns what a handler calls back with: the connection its request
// came on, through Options.Outgoing. It reports false for a context that is not
// a handler's.
func CallerFrom(ctx context.Context) (Caller, bool) {
	if r := requestOf(ctx); r != nil {
		return r.c.caller, true
	}
	return nil, false
}

// Async lets the handler of a notification give up its place in the order: the
// notifications, calls and answers that wait for it go on, while the handler
// does too. It does nothing in the handler of a call, or the second time. Bounds
// on notifications hold until the handler returns.
func Async(ctx context.Context) {
	if r := requestOf(ctx); r != nil && r.notification {
		r.c.giveUpPlace(r)
	}
}

// joinedContext has the end of one context and the values of two.
type joinedContext struct {
	context.Context // the end, and values where the other has none
	values          context.Context
}

func (c joinedContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

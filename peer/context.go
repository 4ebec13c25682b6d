package peer

import (
	"context"
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
	in           *incoming // until its handler has returned, or later; guarded by Conn.mu
	notification bool
	early        bool        // a call: it started before the notifications that arrived earlier were handled; guarded by Conn.mu
	waits        int32       // a notification: own calls that wait in it; guarded by Conn.mu
	returned     atomic.Bool // its handler has, after it had ended: see isOver

	asked atomic.Pointer[askedContext] // nil until needed
	cause atomic.Pointer[error]        // set when it has ended
}

// askedContext ends with a requestContext, or with the connection.
type askedContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

type requestKey struct{}

// ask returns the context that others may wait for.
func (r *requestContext) ask() context.Context {
	asked := r.asked.Load()
	if asked == nil {
		parent := r.c.handlers
		if r.cause.Load() != nil {
			parent = context.WithoutCancel(parent) // its end came later, if it has ended
		}
		ctx, cancel := context.WithCancelCause(parent)
		asked = &askedContext{ctx, cancel}
		if !r.asked.CompareAndSwap(nil, asked) {
			cancel(nil) // somebody else was first
			asked = r.asked.Load()
		}
	}
	// Who asks is seen by who ends, or sees the end here, and so does everybody who
	// asks meanwhile: what has ended never looks alive again.
	if cause := r.cause.Load(); cause != nil {
		asked.cancel(*cause)
	}
	return asked.Context
}

// end ends the context, unless it has ended with the connection. The first cause
// stays; end reports whether it is this one.
func (r *requestContext) end(cause *error) bool {
	if r.c.handlers.Err() != nil || !r.cause.CompareAndSwap(nil, cause) {
		return false
	}
	if asked := r.asked.Load(); asked != nil {
		asked.cancel(*cause)
	}
	return true
}

// handlerReturned ends the context since its handler has returned, or never will
// run.
func (r *requestContext) handlerReturned() {
	if !r.end(&errReturned) {
		r.returned.Store(true)
	}
}

// isOver reports whether the handler has returned.
func (r *requestContext) isOver() bool { return r.cause.Load() == &errReturned || r.returned.Load() }

// bound ends the context after d, if nobody has asked for it yet.
func (r *requestContext) bound(d time.Duration) {
	ctx, cancel := context.WithCancelCause(r.c.handlers)
	timed, stop := context.WithTimeout(ctx, d)
	r.asked.Store(&askedContext{timed, func(cause error) {
		cancel(cause)
		stop()
	}})
}

// Deadline implements [context.Context].
func (r *requestContext) Deadline() (time.Time, bool) {
	if asked := r.asked.Load(); asked != nil {
		return asked.Deadline()
	}
	return r.c.handlers.Deadline()
}

// Done implements [context.Context].
func (r *requestContext) Done() <-chan struct{} { return r.ask().Done() }

// Err implements [context.Context].
func (r *requestContext) Err() error {
	switch {
	case r.asked.Load() != nil:
		return r.ask().Err()
	case r.cause.Load() != nil:
		return context.Canceled
	}
	return r.c.handlers.Err()
}

// Value implements [context.Context]. The keys by which package context finds the
// contexts it made are among those it does not know.
func (r *requestContext) Value(key any) any {
	switch key.(type) {
	case requestKey:
		return r
	case metaKey: // what goes out with requests; asked for by each
		return r.c.handlers.Value(key)
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

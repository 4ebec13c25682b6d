package peer

import (
	"context"
	"sync"
	"time"
)

// requestContext is the context of a handler. It knows its request.
//
// Most handlers never wait for its end, so what it takes to tell of it is made
// when somebody first asks.
type requestContext struct {
	parent context.Context // of all handlers of the connection
	r      *incoming

	mu     sync.Mutex
	asked  context.Context // with the end of this one and of parent; nil until needed
	cancel context.CancelCauseFunc
	cause  error // set when this one has ended
}

type requestKey struct{}

func (c *requestContext) init(parent context.Context, r *incoming) { c.parent, c.r = parent, r }

// ask returns the context that others may wait for.
func (c *requestContext) ask() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked, c.cancel = context.WithCancelCause(c.parent)
		if c.cause != nil {
			c.cancel(c.cause)
		}
	}
	return c.asked
}

// end ends the context. The first cause stays.
func (c *requestContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
	}
	if c.cancel != nil {
		c.cancel(c.cause)
	}
}

// Deadline implements [context.Context].
func (c *requestContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done implements [context.Context].
func (c *requestContext) Done() <-chan struct{} { return c.ask().Done() }

// Err implements [context.Context].
func (c *requestContext) Err() error {
	c.mu.Lock()
	asked, cause := c.asked, c.cause
	c.mu.Unlock()
	switch {
	case asked != nil:
		return asked.Err()
	case cause != nil:
		return context.Canceled
	}
	return c.parent.Err()
}

// Value implements [context.Context]. The keys by which package context finds the
// contexts it made are among those it does not know.
func (c *requestContext) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return c.r
	}
	return c.ask().Value(key)
}

// requestOf is the request whose handler ctx belongs to, or nil.
func requestOf(ctx context.Context) *incoming {
	r, _ := ctx.Value(requestKey{}).(*incoming)
	return r
}

// notificationOf is the notification whose handler ctx belongs to, or nil.
func notificationOf(ctx context.Context) *incoming {
	if r := requestOf(ctx); r != nil && r.isNotification() {
		return r
	}
	return nil
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
	if r := notificationOf(ctx); r != nil {
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

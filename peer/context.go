package peer

import "context"

// requestContext is the context of a handler. It knows its request.
type requestContext struct {
	context.Context
	r *incoming
}

type requestKey struct{}

func (c requestContext) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return c.r
	}
	return c.Context.Value(key)
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

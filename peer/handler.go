package peer

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/duetrpc/duet/codec"
)

// Handler answers requests. For a call the result, or the error, goes back to
// the caller; for a notification both are dropped and an error is counted.
//
// An error that is, or wraps, an *Error is sent as it is; any other is logged
// here and sent as a bare -32603, and so is a panic. An error that came from a
// call of this handler's own counts as any other, unless passed through Forward.
//
// ctx ends when the call is cancelled, when the connection ends, and when
// ServeRPC returns; context.Cause tells which. ServeRPC runs concurrently with
// itself, except that the notifications of one connection run one at a time. It
// may call back, notify, and close the connection.
type Handler interface {
	ServeRPC(ctx context.Context, req *Request) (any, error)
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, req *Request) (any, error)

// ServeRPC calls f.
func (f HandlerFunc) ServeRPC(ctx context.Context, req *Request) (any, error) { return f(ctx, req) }

// Middleware wraps a Handler. It sees calls and notifications alike.
type Middleware func(Handler) Handler

// Chain wraps h, the first middleware outermost. The result still knows the
// methods of h if that is a *Registry. It panics if any of them is nil.
func Chain(h Handler, middleware ...Middleware) Handler {
	if r, ok := h.(*Registry); isNil(h) || ok && r == nil {
		panic("peer: Chain needs a Handler")
	}
	wrapped := h
	for i := len(middleware) - 1; i >= 0; i-- {
		if middleware[i] == nil {
			panic(fmt.Sprintf("peer: Chain: middleware %d is nil", i))
		}
		if wrapped = middleware[i](wrapped); isNil(wrapped) {
			panic(fmt.Sprintf("peer: Chain: middleware %d returned nil", i))
		}
	}
	if r, ok := h.(lookuper); ok {
		return chain{Handler: wrapped, lookuper: r}
	}
	return wrapped
}

// lookuper is what a connection asks of a Registry, also through a Chain.
type lookuper interface {
	lookup(method []byte) *entry
	freeze()
}

type chain struct {
	Handler
	lookuper
}

// Request is one incoming call or notification.
type Request struct {
	// Method is the name as sent.
	Method string

	// ID is the id of a call, as sent; zero for a notification. Valid until
	// ServeRPC returns.
	ID codec.ID

	// Params is the JSON text of the params: an array, an object, or nil where
	// there are none. Valid until ServeRPC returns.
	Params json.RawMessage

	// Conn is the connection the request came on.
	Conn *Conn
}

// IsNotification reports whether nobody waits for an answer.
func (r *Request) IsNotification() bool { return r.ID.IsZero() }

// Decode reads the params into v with the connection's JSON. Missing params
// leave v as it is. A mismatch is an *Error with code -32602, whose data names
// the member by its JSON pointer and the JSON kinds.
func (r *Request) Decode(v any) error {
	if r.Params == nil {
		return nil
	}
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = append((*raw)[:0], r.Params...)
		return nil
	}
	return r.Conn.decodeParams(r.Params, v, nil)
}

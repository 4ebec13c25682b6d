package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/duetrpc/duet/codec"
)

// outcome is how a call went: a result, or the error that the other end sees. A
// result that cannot be sent turns into an error when it is encoded.
type outcome struct {
	r      *incoming
	result any
	err    *Error
}

// encode appends the outcome. An answer there must be, so a result that cannot
// be sent becomes an internal error, also where user code panics on the way.
func (o *outcome) encode(c *Conn, dst []byte) []byte {
	start := len(dst)
	if o.err == nil {
		dst, err := c.appendResult(dst, o.r.id, o.result)
		if err == nil {
			return dst
		}
		o.fail(c, err, false)
		return codec.AppendError(dst[:start], o.r.id, o.err)
	}
	return codec.AppendError(dst, o.r.id, o.err)
}

// fail makes err the outcome: once, since it logs and counts.
func (o *outcome) fail(c *Conn, err error, cancelled bool) {
	method := o.r.name()
	o.result, o.err = nil, &Error{Code: codec.InternalError, Message: "internal error"}
	defer func() {
		if v := recover(); v != nil { // in the Error, As or Is of the user's error
			_ = c.panicked(method, v)
		}
	}()
	c.mu.Lock()
	c.stats.failed(o.r.entry)
	c.mu.Unlock()
	e, detail := c.opts.Profile.onWire(err, cancelled)
	if !detail {
		if err = c.sendable(o.r, e, err); err == nil {
			o.err = e
			return
		}
	}
	switch {
	case errors.Is(err, errPanic): // logged with its stack already
	case c.ctx.Err() != nil && errors.Is(err, context.Canceled):
		// The other end has gone, and the handler noticed, as it should.
	default:
		c.log(slog.LevelError, "duet: handler failed",
			slog.String("method", method), slog.Any("error", forLog(err)))
	}
}

// sendable returns nil if e can be sent as it is, and reports a code that the
// application should not have chosen, once per connection and code.
func (c *Conn) sendable(r *incoming, e *Error, from error) error {
	if e.Data != nil && codec.Check(e.Data, &c.valueRules) != nil {
		return fmt.Errorf("peer: the data of error %d is not JSON", e.Code)
	}
	size := int64(len(codec.AppendError(nil, r.id, &Error{Code: e.Code, Message: e.Message})) + len(`,"data":`) + len(e.Data))
	if most := c.opts.Limits.MessageBytes; size > most {
		return &LimitError{What: "MessageBytes", Limit: most, Got: size}
	}
	var own madeError
	if !c.opts.Profile.reserved(e.Code) || errors.As(from, &own) {
		return nil
	}
	c.mu.Lock()
	fresh := c.stats.firstUse(e.Code)
	c.mu.Unlock()
	if fresh {
		c.events.add(Event{Kind: ReservedCode, Method: r.name(),
			Err: fmt.Errorf("peer: code %d lies in the range JSON-RPC 2.0 section 5.1 reserves", e.Code)})
	}
	return nil
}

func (c *Conn) appendResult(dst []byte, id codec.ID, result any) ([]byte, error) {
	start := len(dst)
	dst = codec.OpenResult(dst, id)
	at := len(dst)
	dst, err := c.appendValue(dst, result)
	if err != nil {
		return dst, &jsonError{"result", err}
	}
	if c.rules.ObjectResult && first(dst[at:]) != '{' {
		return dst, errors.New("peer: result is not an object, as the profile wants it")
	}
	dst = codec.Close(dst)
	if n := int64(len(dst) - start); n > c.opts.Limits.MessageBytes {
		return dst, &LimitError{What: "MessageBytes", Limit: c.opts.Limits.MessageBytes, Got: n}
	}
	return dst, nil
}

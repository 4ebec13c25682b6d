package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/duetrpc/duet/codec"
)

// text is what one message says: a request, or how the call r went.
type text struct {
	id     int64 // of a call; 0 of a notification
	method string
	value  any        // the params, or the result; nil where there is none
	add    *additions // to the params; nil where there are none

	r   *incoming // nil in a request
	err *Error    // what the other end sees instead of a result
}

// encode appends t to buf.
func (c *Conn) encode(buf *buffer, t *text) error {
	if t.r != nil {
		c.encodeAnswer(buf, t)
		return nil
	}
	return c.encodeRequest(buf, t)
}

// encodeAnswer appends the outcome of a call. An answer there must be, so a result
// that cannot be sent becomes an internal error, also where user code panics on
// the way.
func (c *Conn) encodeAnswer(buf *buffer, t *text) {
	start := len(buf.b)
	if t.err == nil {
		err := c.encodeResult(buf, t.r.id, t.value)
		if err == nil {
			return
		}
		c.fail(t, err, false)
		buf.b = buf.b[:start]
	}
	buf.b = codec.AppendError(buf.b, &c.rules, t.r.id, t.err)
}

// fail makes err the outcome: once, since it logs and counts.
func (c *Conn) fail(t *text, err error, givenUp bool) {
	method := t.r.name()
	t.value, t.err = nil, &Error{Code: codec.InternalError, Message: "internal error"}
	defer func() {
		if v := recover(); v != nil { // in the Error, As or Is of the user's error
			_ = c.panicked(method, v)
		}
	}()
	c.stats.failed(t.r.entry)
	e, detail := c.opts.Profile.onWire(err, givenUp)
	if detail && c.handlers.Err() != nil && c.ctx.Err() == nil && errors.Is(err, context.Canceled) {
		// Options.BaseContext has ended, and the handler noticed.
		t.err = &Error{Code: c.opts.Profile.shuttingDown(), Message: "shutting down"}
		return
	}
	if !detail {
		if err = c.sendable(t.r, e, err); err == nil {
			t.err = e
			return
		}
	}
	switch {
	case errors.Is(err, errPanic): // logged with its stack already
	case c.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, c.endCause())):
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
	size := int64(len(codec.AppendError(nil, &c.rules, r.id, &Error{Code: e.Code, Message: e.Message})) + len(`,"data":`) + len(e.Data))
	if most := c.opts.Limits.MessageBytes; size > most {
		return &LimitError{What: "MessageBytes", Limit: most, Got: size}
	}
	var own madeError
	if !c.opts.Profile.reserved(e.Code) || errors.As(from, &own) {
		return nil
	}
	if c.stats.firstUse(e.Code) {
		c.events.add(Event{Kind: ReservedCode, Method: r.name(),
			Err: fmt.Errorf("peer: code %d lies in the range JSON-RPC 2.0 section 5.1 reserves", e.Code)})
	}
	return nil
}

func (c *Conn) encodeResult(buf *buffer, id codec.ID, result any) error {
	start := len(buf.b)
	buf.b = codec.OpenResult(buf.b, &c.rules, id)
	at := len(buf.b)
	if err := c.encodeValue(buf, result); err != nil {
		return &jsonError{"result", err}
	}
	if c.rules.ObjectResult && first(buf.b[at:]) != '{' {
		return errors.New("peer: result is not an object, as the profile wants it")
	}
	buf.b = codec.Close(buf.b)
	if n := int64(len(buf.b) - start); n > c.opts.Limits.MessageBytes {
		return &LimitError{What: "MessageBytes", Limit: c.opts.Limits.MessageBytes, Got: n}
	}
	return nil
}

package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/pending"
)

// CallOption is a choice for one call.
type CallOption func(*callOptions)

type callOptions struct {
	note string
}

// Note adds text of the caller's own to what is logged and reported about the
// call. It does not leave this end.
func Note(text string) CallOption { return func(o *callOptions) { o.note = text } }

// Call calls method at the other end and waits for the answer, which it decodes
// into result; a nil result drops it. params are encoded with the connection's
// JSON and must come out as an array or an object; nil params are left out. A
// json.RawMessage goes out, and comes in, as it is.
//
// Call returns when the answer is there and the notifications that arrived
// before it are handled, or as soon as ctx ends: then the other end is told, by
// the profile's rule. Every error is a *CallError.
func (c *Conn) Call(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	return c.caller.Call(ctx, method, params, result, opts...)
}

// Notify sends a notification. It returns nil once that is queued to be written,
// and waits while the queue is full, at most until ctx ends. What one goroutine
// sends arrives in that order, calls and answers included. Its errors are those
// that a CallError of a call that was not sent may hold.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	return c.caller.Notify(ctx, method, params)
}

// outgoing is the innermost Caller of a connection.
type outgoing struct{ c *Conn }

func (o outgoing) Call(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	c := o.c
	var choice callOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&choice)
		}
	}
	fail := func(sent pending.State, err error) error {
		return &CallError{Method: method, Note: choice.note, Sent: sent, Err: err}
	}
	err := c.mayCall(ctx)
	if err == nil {
		err = checkResult(result)
	}
	if err != nil {
		return fail(pending.NotSent, err)
	}
	slot, err := c.calls.Add(method, choice.note)
	if err != nil {
		return fail(pending.NotSent, err)
	}
	defer c.checkDrained()
	defer slot.Drop() // where user code panics; otherwise it is settled by then
	if inside := notificationOf(ctx); inside != nil {
		c.yields(inside, slot)
		defer c.yieldsNot(slot.ID)
	}
	if err := c.send(ctx, slot, method, params); err != nil {
		return fail(pending.NotSent, err)
	}
	rep, err := c.wait(ctx, slot)
	if err != nil {
		return fail(slot.State(), err)
	}
	if err := c.takeReply(rep, result); err != nil {
		return fail(pending.Sent, err)
	}
	return nil
}

func (o outgoing) Notify(ctx context.Context, method string, params any) error {
	c := o.c
	err := c.mayCall(ctx)
	if err == nil {
		err = c.send(ctx, nil, method, params)
	}
	if err != nil {
		return fmt.Errorf("peer: notify %q: %w", method, err)
	}
	return nil
}

// mayCall refuses requests on a connection that has ended or shuts down, and
// those whose context has ended. Handlers that still run may finish with calls
// of their own.
func (c *Conn) mayCall(ctx context.Context) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	r := requestOf(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return c.cause
	case c.draining != nil && !c.runs(r):
		return ErrShutdown
	}
	return nil
}

// send encodes a call, or a notification without a slot, and queues it.
func (c *Conn) send(ctx context.Context, slot *pending.Slot[reply], method string, params any) error {
	encode := func(dst []byte) ([]byte, error) {
		id := int64(0)
		if slot != nil {
			id = slot.ID
		}
		dst, err := c.appendRequest(dst, id, method, params)
		if most := c.opts.Limits.MessageBytes; err == nil && int64(len(dst)) > most {
			err = &LimitError{What: "MessageBytes", Limit: most, Got: int64(len(dst))}
		}
		return dst, err
	}
	m := outgoingMessage{slot: slot}
	if err := c.encodeWithRoom(ctx, &m, nil, encode); err != nil {
		return err
	}
	n := len(m.buf.b)
	if err := c.push(m); err != nil {
		m.buf.release()
		return err
	}
	c.stats.sent(n)
	return nil
}

// wait waits for the answer to an own call, and for what has to be handled
// before it.
func (c *Conn) wait(ctx context.Context, slot *pending.Slot[reply]) (reply, error) {
	rep, err := c.waitReply(ctx, slot)
	if err != nil {
		return reply{}, err
	}
	if err := c.awaitOrder(ctx, rep.barrier, len(rep.buf.b)); err != nil {
		rep.buf.release()
		return reply{}, err
	}
	return rep, nil
}

// waitReply waits for the answer to an own call alone.
func (c *Conn) waitReply(ctx context.Context, slot *pending.Slot[reply]) (reply, error) {
	rep, err := slot.Wait(ctx)
	if err != nil {
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			return reply{}, err
		}
		cancel := &c.opts.Profile.Cancel
		if slot.State() != pending.NotSent && !cancel.Off && !cancel.exempt(slot.Method) {
			c.pushCancel(slot.ID)
		}
		return reply{}, contextError(ctx)
	}
	return rep, nil
}

func checkResult(result any) error {
	if v := reflect.ValueOf(result); result != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return fmt.Errorf("%w, not a %T", ErrResult, result)
	}
	return nil
}

// takeReply decodes an answer into result.
func (c *Conn) takeReply(rep reply, result any) error {
	defer rep.buf.release()
	switch {
	case rep.broken != "":
		return &ResponseError{Reason: rep.broken}
	case rep.err != nil:
		return rep.err
	case result == nil:
		return nil
	}
	if raw, ok := result.(*json.RawMessage); ok {
		*raw = append((*raw)[:0], rep.result...)
		return nil
	}
	if err := c.opts.JSON.Unmarshal(rep.result, result); err != nil {
		return &jsonError{"result", err}
	}
	return nil
}

// appendRequest encodes a call, or a notification for id 0.
func (c *Conn) appendRequest(dst []byte, id int64, method string, params any) ([]byte, error) {
	if !utf8.ValidString(method) {
		return dst, fmt.Errorf("%w: method %q is not UTF-8", ErrParams, method)
	}
	start := len(dst)
	if params != nil {
		if id != 0 {
			dst = codec.OpenCall(dst, id, method)
		} else {
			dst = codec.OpenNotification(dst, method)
		}
		at := len(dst)
		var err error
		if dst, err = c.appendValue(dst, params); err != nil {
			return dst, &jsonError{"params", err}
		}
		switch kind := first(dst[at:]); {
		case kind == '{', kind == '[' && !c.rules.ObjectParams:
			return codec.Close(dst), nil
		case kind != 'n':
			// JSON-RPC 2.0 section 4.2: a structured value.
			return dst, fmt.Errorf("%w: they begin with %q", ErrParams, kind)
		}
		dst = dst[:start] // null: nothing to send
	}
	if id != 0 {
		return codec.AppendCall(dst, id, method, nil), nil
	}
	return codec.AppendNotification(dst, method, nil), nil
}

// appendValue encodes v. Raw JSON goes out to the last byte, once it is known to
// be JSON: a broken value must fail here, not at the other end. So must a
// marshaller that panics, which would otherwise take a slot with it.
func (c *Conn) appendValue(dst []byte, v any) (value []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = dst, c.panicked(otherMethod, p)
		}
	}()
	start := len(dst)
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case json.RawMessage:
		if v == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, v...)
	default:
		if dst, err = c.opts.JSON.Marshal(dst, v); err != nil {
			return dst, err
		}
		// What JSONv2 writes is JSON and UTF-8; that leaves its depth, which
		// takes two bytes a level.
		if _, ok := c.opts.JSON.(JSONv2); ok && (len(dst)-start)/2 < c.valueRules.Depth {
			return dst, nil
		}
	}
	return dst, codec.Check(dst[start:], &c.valueRules)
}

// first is the first byte of a JSON text that is not white space.
func first(text []byte) byte {
	if text = bytes.TrimLeft(text, " \t\r\n"); len(text) > 0 {
		return text[0]
	}
	return 0
}

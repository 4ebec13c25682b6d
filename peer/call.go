package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/pending"
)

// CallOption is a choice for one call.
type CallOption func(*callOptions)

type callOptions struct {
	note       string
	cancel     context.Context // nil where there is none
	progress   func(Progress)
	extensions []func(*Extension) error
}

// extends reports whether the call is more than its method and params.
func (o *callOptions) extends() bool { return o.progress != nil || len(o.extensions) > 0 }

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
	if err := checkResult(result); err != nil {
		return &CallError{Method: method, Note: chosen(opts).note, Sent: pending.NotSent, Err: err}
	}
	call, err := o.c.begin(ctx, method, opts)
	if err != nil {
		return err
	}
	defer o.c.called(call.slot)
	return o.c.complete(ctx, call, params, result)
}

// chosen returns what opts say.
func chosen(opts []CallOption) callOptions {
	if len(opts) == 0 {
		return callOptions{}
	}
	var choice callOptions // on the heap, since options are anybody's
	for _, opt := range opts {
		if opt != nil {
			opt(&choice)
		}
	}
	return choice
}

// CancelBy has the end of ctx give the call up, and the call still wait for its answer:
// the error that the other end gives then, or what it had ready, as LSP and ACP have it.
// The context of Call itself ends the waiting. Where the profile has no cancels, or
// wants no answer after one, bound that.
func CancelBy(ctx context.Context) CallOption { return func(o *callOptions) { o.cancel = ctx } }

// ownCall is a call of this end while its caller waits.
type ownCall struct {
	slot   *pending.Slot[reply]
	inside *requestContext // the request whose handler calls, or nil
	choice callOptions
}

// begin makes the slot of a call, which called ends.
func (c *Conn) begin(ctx context.Context, method string, opts []CallOption) (ownCall, error) {
	call := ownCall{inside: requestOf(ctx), choice: chosen(opts)}
	err := c.mayCall(ctx, call.inside)
	if err == nil && c.opts.Profile.OneWay && c.opts.Accepts {
		err = ErrDirection
	}
	if err == nil {
		if call.slot, err = c.calls.Add(method, call.choice.note); err == nil {
			c.active.Add(1)
			return call, nil
		}
	}
	return call, &CallError{Method: method, Note: call.choice.note, Sent: pending.NotSent, Err: err}
}

// complete sends a call, waits for the answer and decodes it.
func (c *Conn) complete(ctx context.Context, call ownCall, params, result any) error {
	slot := call.slot
	if call.inside != nil && call.inside.notification {
		c.yields(call.inside, slot)
		defer c.yieldsNot(slot.ID)
	}
	fail := func(sent pending.State, err error) error {
		return &CallError{Method: slot.Method, Note: slot.Note, Sent: sent, Err: err}
	}
	t := text{method: slot.Method, id: slot.ID, value: params}
	var err error
	if t.add, err = c.additionsOf(ctx, true); err != nil {
		return fail(pending.NotSent, err)
	}
	var updates *updates
	if call.choice.extends() {
		x := &Extension{Conn: c, ID: slot.ID, add: or(t.add, &additions{})}
		defer x.end()
		if updates, err = x.prepare(&call.choice); err != nil {
			return fail(pending.NotSent, err)
		}
		t.add = x.add
	}
	if err := c.send(ctx, slot, &t); err != nil {
		return fail(slot.State(), err)
	}
	told := c.waitOn(ctx, call, updates)
	rep, err := c.wait(ctx, slot, updates, told)
	if err != nil {
		return fail(slot.State(), err)
	}
	if err := c.takeReply(rep, result); err != nil {
		// Where both ends have the same deadline the other one's clock may be faster.
		deadline, bounded := ctx.Deadline()
		if bounded && !time.Now().Before(deadline) && errors.Is(err, &Error{Code: c.opts.Profile.cancelled()}) {
			err = context.DeadlineExceeded
		}
		return fail(pending.Sent, err)
	}
	return nil
}

// called ends an own call, also where user code panicked on the way.
func (c *Conn) called(slot *pending.Slot[reply]) {
	slot.Drop()
	slot.Release()
	c.active.Add(-1)
	c.checkDrained()
}

func (o outgoing) Notify(ctx context.Context, method string, params any) error {
	c := o.c
	err := c.mayCall(ctx, requestOf(ctx))
	t := text{method: method, value: params}
	if err == nil {
		t.add, err = c.additionsOf(ctx, false)
	}
	if err == nil {
		err = c.send(ctx, nil, &t)
	}
	if err != nil {
		return fmt.Errorf("peer: notify %q: %w", method, err)
	}
	return nil
}

// mayCall refuses requests on a connection that has ended or shuts down, and
// those whose context has ended. Handlers that still run may finish with calls
// of their own. r is the request whose handler calls, or nil.
func (c *Conn) mayCall(ctx context.Context, r *requestContext) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	if !c.isDraining.Load() && c.ctx.Err() == nil {
		return nil
	}
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
func (c *Conn) send(ctx context.Context, slot *pending.Slot[reply], t *text) error {
	m := outgoingMessage{slot: slot, own: true}
	if err := c.encodeWithRoom(ctx, &m, t); err != nil {
		return err
	}
	alone := slot != nil && c.active.Load() == 1 && c.served.running.Load() == 0
	err := c.push(&m, alone)
	if err != nil {
		m.buf.release()
	}
	return err
}

// waitOn does what is to be done while a call waits: progress is delivered, and the end
// of the context of CancelBy told, which waitOn reports. It returns when there is no
// more to wait for.
func (c *Conn) waitOn(ctx context.Context, call ownCall, updates *updates) (told bool) {
	cancel := call.choice.cancel
	if updates == nil && cancel == nil {
		return false
	}
	var wake, end <-chan struct{}
	if updates != nil {
		wake = updates.wake
	}
	if cancel != nil {
		end = cancel.Done()
	}
	for {
		switch call.slot.WaitOr(ctx, wake, end) {
		case 0:
			return told
		case 1:
			updates.deliver(ctx)
		case 2:
			end, told = nil, true
			c.giveUp(call.slot, cancel)
		}
	}
}

// giveUp tells the other end that an own call whose context has ended is given up.
func (c *Conn) giveUp(slot *pending.Slot[reply], ctx context.Context) {
	if p := &c.opts.Profile.Cancel; !p.Off && !p.exempt(slot.Method) {
		c.pushCancel(ownCancel{slot.ID, reasonOf(ctx)})
	}
}

// wait waits for the answer to an own call, and for what has to be handled
// before it. updates, where they are not nil, are delivered then. Where the other end
// was told already that the call is given up, it is not told again.
func (c *Conn) wait(ctx context.Context, slot *pending.Slot[reply], updates *updates, told bool) (reply, error) {
	rep, err := c.waitReply(ctx, slot, told)
	if err != nil {
		return reply{}, err
	}
	if updates != nil {
		updates.deliver(ctx)
	}
	if err := c.awaitOrder(ctx, rep.barrier, len(rep.buf.b)); err != nil {
		rep.buf.release()
		return reply{}, err
	}
	return rep, nil
}

// waitReply waits for the answer to an own call alone.
func (c *Conn) waitReply(ctx context.Context, slot *pending.Slot[reply], told bool) (reply, error) {
	rep, err := slot.Wait(ctx)
	if err != nil {
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			return reply{}, err
		}
		if slot.State() != pending.NotSent && !told {
			c.giveUp(slot, ctx)
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
	case rep.ended != nil:
		return rep.ended
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

// encodeRequest appends a call, or a notification, within MessageBytes.
func (c *Conn) encodeRequest(buf *buffer, t *text) error {
	start := len(buf.b)
	if err := c.encodeParams(buf, t); err != nil {
		return err
	}
	if t.add != nil {
		buf.b = t.add.addTop(buf.b)
	}
	if n, most := int64(len(buf.b)-start), c.opts.Limits.MessageBytes; n > most {
		return &LimitError{What: "MessageBytes", Limit: most, Got: n}
	}
	return nil
}

func (c *Conn) encodeParams(buf *buffer, t *text) error {
	if !utf8.ValidString(t.method) {
		return fmt.Errorf("%w: method %q is not UTF-8", ErrParams, t.method)
	}
	start := len(buf.b)
	if t.value != nil {
		if t.id != 0 {
			buf.b = codec.OpenCall(buf.b, &c.rules, t.id, t.method)
		} else {
			buf.b = codec.OpenNotification(buf.b, &c.rules, t.method)
		}
		at := len(buf.b)
		if err := c.encodeValue(buf, t.value); err != nil {
			return &jsonError{"params", err}
		}
		kind := first(buf.b[at:])
		switch {
		case kind == 'n': // null: nothing to send
			buf.b = buf.b[:start]
		case kind == '{', kind == '[' && !c.rules.ObjectParams:
			if t.add != nil {
				params, err := t.add.addTo(buf.b[at:])
				if err != nil {
					return err
				}
				buf.b = append(buf.b[:at], params...)
			}
			buf.b = codec.Close(buf.b)
			return nil
		default:
			// JSON-RPC 2.0 section 4.2: a structured value.
			return fmt.Errorf("%w: they begin with %q", ErrParams, kind)
		}
	}
	var params []byte
	if t.add != nil {
		params, _ = t.add.addTo(nil) // there is always a place
	}
	if t.id != 0 {
		buf.b = codec.AppendCall(buf.b, &c.rules, t.id, t.method, params)
	} else {
		buf.b = codec.AppendNotification(buf.b, &c.rules, t.method, params)
	}
	return nil
}

// encodeValue appends v. Raw JSON goes out to the last byte, once it is known to
// be JSON: a broken value must fail here, not at the other end. So must a
// marshaller that panics, which would otherwise take a slot with it.
func (c *Conn) encodeValue(buf *buffer, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.panicked(otherMethod, p)
		}
	}()
	start := len(buf.b)
	if raw, ok := v.(*json.RawMessage); ok && raw != nil {
		v = *raw
	}
	switch raw := v.(type) {
	case nil:
		buf.b = append(buf.b, "null"...)
		return nil
	case json.RawMessage:
		if raw == nil {
			buf.b = append(buf.b, "null"...)
			return nil
		}
		buf.b = append(buf.b, raw...)
	default:
		if !c.plainJSON {
			if buf.b, err = c.opts.JSON.Marshal(buf.b, v); err != nil {
				return err
			}
			break
		}
		if err := marshalV2(buf, v); err != nil {
			return err
		}
		// What JSONv2 writes by itself is JSON and UTF-8, names differ, and the type
		// tells its depth.
		if c.opts.depths.of(reflect.TypeOf(v)) <= c.valueRules.Depth {
			return nil
		}
	}
	return codec.Check(buf.b[start:], &c.valueRules)
}

// first is the first byte of a JSON text that is not white space.
func first(text []byte) byte {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

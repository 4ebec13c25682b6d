package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/duetrpc/duet/pending"
)

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
	return call, c.callError(method, call.choice.note, pending.NotSent, err)
}

// complete sends a call, waits for the answer and decodes it.
func (c *Conn) complete(ctx context.Context, call ownCall, params, result any) error {
	slot := call.slot
	if call.inside != nil && call.inside.notification {
		c.yields(call.inside, slot)
		defer c.yieldsNot(slot.ID)
	}
	fail := func(sent pending.State, err error) error {
		return c.callError(slot.Method, slot.Note, sent, err)
	}
	t := text{method: slot.Method, id: slot.ID, value: params}
	var err error
	if t.add, err = c.additionsOf(ctx, true); err != nil {
		return fail(pending.NotSent, err)
	}
	var updates *updates
	if call.choice.extends() {
		x := &Extension{Conn: c, ID: slot.ID, once: call.choice.once, add: or(t.add, &additions{})}
		defer x.end()
		if updates, err = x.prepare(&call.choice); err != nil {
			return fail(pending.NotSent, err)
		}
		t.add = x.add
	}
	if err := c.send(ctx, slot, &t); err != nil {
		return fail(c.sentState(slot), err)
	}
	told := c.waitOn(ctx, call, updates)
	rep, err := c.wait(ctx, slot, updates, told)
	if err != nil {
		return fail(c.sentState(slot), err)
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

package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duetrpc/duet/pending"
)

// Call waits for the connection, at most until ctx ends, and calls method over it as
// [Conn.Call] does. Where the connection ends before the answer is there, the call is made
// again on the next one if it was not sent; with [Idempotent] also if it may have been.
// Everything else is returned as it is: what the other end answers, the end of ctx, a
// limit, an own Close or Shutdown.
//
// Every error is a *CallError. Where there was no connection its Err is that of
// [Client.Conn], without an *Error in it: no other end has answered. Where the call was
// made more than once, Sent is of the attempt that got furthest. A call that may have been
// sent three times is not made again: it may be what ends the connections.
//
// In OnConnect, call through its Conn, and in a handler with [CallerFrom]. While OnConnect
// runs, a Call with its context, or with that of a handler of the same connection, fails: it
// would wait for itself. One with another context waits until OnConnect is given up.
func (c *Client) Call(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	choice := chosen(opts)
	var before *CallError // of the attempt that got furthest, of those that may have been sent
	once := false         // what goes with the call cannot go twice
	if len(choice.extensions) > 0 {
		opts = append(slices.Clip(opts), func(o *callOptions) { o.once = &once })
	}
	for made := 0; ; {
		conn, err := c.Conn(ctx)
		if err != nil {
			err = &CallError{Method: method, Note: choice.note, Sent: pending.NotSent, Err: err}
		} else {
			err = conn.Call(ctx, method, params, result, opts...)
		}
		var failed *CallError
		if !errors.As(err, &failed) {
			return err
		}
		again := conn != nil && conn.broke(ctx, failed.Err)
		if failed.Sent != pending.NotSent {
			made++
			givenUp := choice.cancel != nil && choice.cancel.Err() != nil
			again = again && choice.idempotent && !once && made < mostMade && !givenUp
		}
		switch {
		case !again && before != nil && failed.Sent < before.Sent:
			return &CallError{Method: method, Note: choice.note, Sent: before.Sent,
				Err: fmt.Errorf("%w; and again: %w", before.Err, failed.Err)}
		case !again:
			return err
		case failed.Sent != pending.NotSent && (before == nil || before.Sent < failed.Sent):
			before = failed
		}
		<-conn.ctx.Done() // which follows the cause at once
	}
}

// mostMade is how often an idempotent call is made, at most, that may have been sent: it may be
// the call that the connections end of.
const mostMade = 3

// Notify waits for the connection as Call does and sends a notification, as
// [Conn.Notify] does. Where the connection has ended before that was queued it is queued on
// the next one. One that was queued is never sent again, though it may not have left.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	for {
		conn, err := c.Conn(ctx)
		if err != nil {
			return fmt.Errorf("peer: notify %q: %w", method, err)
		}
		if err = conn.Notify(ctx, method, params); err == nil || !conn.broke(ctx, err) {
			return err
		}
		<-conn.ctx.Done()
	}
}

// broke reports whether err is that the connection has ended, not by this end, and the
// caller still waits.
func (c *Conn) broke(ctx context.Context, err error) bool {
	cause := c.endCause()
	return cause != nil && ctx.Err() == nil && !local(cause) && errors.Is(err, cause)
}

// local reports whether a connection with this cause was ended by its own end.
func local(cause error) bool { return errors.Is(cause, ErrClosed) || errors.Is(cause, ErrShutdown) }

// errConnecting is why a call in OnConnect may not wait for OnConnect.
var errConnecting = errors.New("peer: no connection: OnConnect has not returned; it calls through its Conn, and a handler through CallerFrom")

// noConnection is why there is no connection. An *Error that the other end gave to OnConnect
// is no answer to the call that waited for it, and the end of another context not that of
// the caller's: in last they are not found.
type noConnection struct {
	why  error // the wait is over
	last error // why there is none; nil where it is not known, or why says it
}

func (e *noConnection) Error() string {
	if e.last == nil {
		return "peer: no connection: " + e.why.Error()
	}
	return fmt.Sprintf("peer: no connection: %v (last: %v)", e.why, e.last)
}

func (e *noConnection) Is(target error) bool {
	if errors.Is(e.why, target) {
		return !isAnswer(target)
	}
	return e.last != nil && !isAnswer(target) && target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.last, target)
}

func (e *noConnection) As(target any) bool {
	if _, ok := target.(**Error); ok {
		return false
	}
	return errors.As(e.why, target) || e.last != nil && errors.As(e.last, target)
}

func isAnswer(target error) bool {
	_, ok := target.(*Error)
	return ok
}

package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/pending"
	"github.com/duetrpc/duet/wsconn"
)

// Error is the error object of JSON-RPC 2.0 section 5.1, the only error that
// crosses the wire. Find it with errors.As; errors.Is compares codes.
//
// An application chooses codes outside -32768..-32000, which section 5.1
// reserves; of that range only -32602 is for a handler to use. -32603 is no code
// to choose: it says that the answering end failed in a way it does not explain,
// which is what any other error of a handler becomes.
type Error = codec.Error

// Code is the code of an Error.
type Code = codec.Code

// The codes of JSON-RPC 2.0 section 5.1, and those this library makes itself
// where the profile has no others.
const (
	ParseError     = codec.ParseError
	InvalidRequest = codec.InvalidRequest
	MethodNotFound = codec.MethodNotFound
	InvalidParams  = codec.InvalidParams
	InternalError  = codec.InternalError

	Cancelled    Code = -32800 // as LSP and ACP have it
	Overloaded   Code = -32010 // over a bound; try again later
	ShuttingDown Code = -32011
)

// CloseError says how a WebSocket ended: the close code and reason.
type CloseError = wsconn.CloseError

var (
	// ErrClosed is the cause of a connection that this end closed.
	ErrClosed = errors.New("peer: connection closed")

	// ErrShutdown is returned for requests made on a connection that is shutting
	// down.
	ErrShutdown = errors.New("peer: connection is shutting down")

	// ErrLost is found in the error of a call whose connection ended before its answer was
	// there, beside what ended it: in order or not, by either end. Its Sent tells
	// whether it may have run.
	ErrLost = errors.New("peer: the connection has ended")

	// ErrForbidden, returned by Options.Authorize, refuses an upgrade with 403
	// instead of 401.
	ErrForbidden = errors.New("peer: forbidden")

	// ErrTaken is returned by Accept when Options.Transport took the connection
	// over.
	ErrTaken = errors.New("peer: connection taken over by Options.Transport")

	// ErrNoBatch is returned by Batch where the profile has no batches.
	ErrNoBatch = errors.New("peer: the profile has no batches")

	// ErrParams is returned for own params that are neither an array nor an
	// object, or not what the profile allows, and for a method that is not UTF-8.
	ErrParams = errors.New("peer: params are not what the protocol allows")

	// ErrNoPlace is returned where something is to travel with a call and neither its
	// params nor the profile have a place for it.
	ErrNoPlace = errors.New("peer: there is no place for it")

	// ErrToken is returned for a token that is in use.
	ErrToken = errors.New("peer: the token is in use")

	// ErrResult is returned for a result that nothing can be decoded into.
	ErrResult = errors.New("peer: result must be nil or a pointer")
)

// CallError says why a call has no result. Err is what it was: an *Error if the
// other end answered with one, the end of the context, the cause the connection
// ended with (and ErrLost), a *LimitError, a *ResponseError, a *CancelError where the other end alone
// takes calls and ended this one, pending.ErrFull where too many own calls wait,
// ErrShutdown, ErrParams, ErrResult, ErrNoBatch, ErrNoPlace, ErrDirection, or what the
// JSON encoder or decoder said.
type CallError struct {
	Method string
	Note   string        // given with Note
	Sent   pending.State // how far the request got
	Err    error
}

func (e *CallError) Error() string { return e.prefix() + e.Err.Error() }

func (e *CallError) prefix() string {
	text := fmt.Sprintf("peer: call %q", e.Method)
	if e.Note != "" {
		text += fmt.Sprintf(" (%s)", e.Note)
	}
	if !errors.As(e.Err, new(*Error)) {
		text += fmt.Sprintf(" (%v)", e.Sent)
	}
	return text + ": "
}

func (e *CallError) Unwrap() error { return e.Err }

// lostError is why a call failed whose connection has ended.
type lostError struct{ err error }

func (e *lostError) Error() string        { return e.err.Error() }
func (e *lostError) Unwrap() error        { return e.err }
func (e *lostError) Is(target error) bool { return target == ErrLost }

// callError makes the error of a call.
func (c *Conn) callError(method, note string, sent pending.State, err error) *CallError {
	if cause := c.endCause(); cause != nil && errors.Is(err, cause) {
		err = &lostError{err}
	}
	return &CallError{Method: method, Note: note, Sent: sent, Err: err}
}

// LimitError says which bound was passed.
type LimitError struct {
	What  string // the field of Limits, for instance "MessageBytes"
	Limit int64
	Got   int64 // what would have been needed; 0 if not known
}

func (e *LimitError) Error() string {
	if e.Got > 0 {
		return fmt.Sprintf("peer: %d is over the limit %s of %d", e.Got, e.What, e.Limit)
	}
	return fmt.Sprintf("peer: over the limit %s of %d", e.What, e.Limit)
}

// WebSocketClose is how the end of a connection over a bound is told.
func (e *LimitError) WebSocketClose() (code int, reason string) {
	switch e.What {
	case "MessageBytes":
		return 1009, "message too big"
	case "Connections":
		return 1013, "too many connections"
	}
	return 1008, "over the limit " + e.What
}

// RefusedError ends a connection whose other end sent too many messages that had
// to be refused.
type RefusedError struct {
	Count  int
	Within time.Duration
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("peer: %d messages refused within %v", e.Count, e.Within)
}

// WebSocketClose is how it is told.
func (e *RefusedError) WebSocketClose() (code int, reason string) {
	return 1008, "too many messages refused"
}

// utf8Error ends a connection that carried text which is not UTF-8
// (RFC 6455 section 8.1).
type utf8Error struct{ err error }

func (e *utf8Error) Error() string                 { return "peer: message refused: " + e.err.Error() }
func (e *utf8Error) Unwrap() error                 { return e.err }
func (e *utf8Error) WebSocketClose() (int, string) { return 1007, "text is not UTF-8" }

// ResponseError says that the other end answered a call with something that is
// no answer: both a result and an error, neither, or a broken error object.
type ResponseError struct {
	Reason string
}

func (e *ResponseError) Error() string { return "peer: broken answer: " + e.Reason }

// CancelError is the cause of a handler's context when the other end gave the
// call up. As the cause of a caller's context it is what the other end is told, where
// the profile has a place for it. It is context.Canceled for errors.Is.
type CancelError struct {
	Reason string // from the other end it is not to be trusted
}

func (e *CancelError) Error() string {
	if e.Reason == "" {
		return "peer: cancelled"
	}
	return fmt.Sprintf("peer: cancelled: %q", e.Reason)
}

// Is makes a CancelError a context.Canceled.
func (e *CancelError) Is(target error) bool { return target == context.Canceled }

// errReturned is the cause of a handler's context after the handler returned.
var errReturned = errors.New("peer: handler returned")

// forwardedError marks an error that another end gave and that is meant to go on.
type forwardedError struct{ e *Error }

func (f forwardedError) Error() string { return f.e.Error() }
func (f forwardedError) Unwrap() error { return f.e }

// madeError is an error that this library answers with itself.
type madeError struct{ e *Error }

func (m madeError) Error() string { return m.e.Error() }
func (m madeError) Unwrap() error { return m.e }

// Forward lets a handler answer with the error object its own call was answered
// with, code, message and data as they are. An err without one is returned
// unchanged, and so becomes a -32603.
func Forward(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return forwardedError{e}
	}
	return err
}

// onWire maps the error of a handler to what the other end may see. detail is
// set where the error itself must be logged here, since it does not leave.
func (p *Profile) onWire(err error, givenUp bool) (e *Error, detail bool) {
	var fwd forwardedError
	if errors.As(err, &fwd) {
		return fwd.e, false
	}
	if givenUp && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return &Error{Code: p.cancelled(), Message: "request cancelled"}, false
	}
	var call *CallError
	if !errors.As(err, &call) && errors.As(err, &e) {
		return e, false
	}
	return &Error{Code: codec.InternalError, Message: "internal error"}, true
}

// jsonError is why a value could not be written as JSON, or read from it.
type jsonError struct {
	what string // "params" or "result"
	err  error
}

func (e *jsonError) Error() string { return "peer: " + e.what + ": " + e.err.Error() }
func (e *jsonError) Unwrap() error { return e.err }

// forLog is err as it may be logged. The text of a JSON encoder or decoder may
// quote a value or a name of params and results; what is logged says instead
// which kinds met. Everything else is logged as it is.
func forLog(err error) error {
	if errors.As(err, new(*paramsRefused)) {
		return errors.New("peer: params do not fit")
	}
	var bad *jsonError
	if !errors.As(err, &bad) {
		return err
	}
	prefix := ""
	var call *CallError
	if errors.As(err, &call) {
		prefix = call.prefix()
	}
	var semantic *jsonv2.SemanticError
	var mismatch *json.UnmarshalTypeError
	var syntax *codec.SyntaxError
	switch {
	case errors.As(bad.err, &semantic):
		return fmt.Errorf("%speer: %s: JSON %s and Go %v do not fit", prefix, bad.what, or(kindName(semantic.JSONKind), "text"), semantic.GoType)
	case errors.As(bad.err, &mismatch):
		kind, _, _ := strings.Cut(mismatch.Value, " ")
		return fmt.Errorf("%speer: %s: JSON %s and Go %v do not fit", prefix, bad.what, kind, mismatch.Type)
	case errors.As(bad.err, &syntax), bad.err == errPanic:
		return fmt.Errorf("%s%w", prefix, bad)
	default:
		return fmt.Errorf("%speer: %s: JSON refused with %T", prefix, bad.what, bad.err)
	}
}

// orderly reports whether a connection that ended with cause ended as meant.
func orderly(cause error) bool {
	var closed *CloseError
	if errors.As(cause, &closed) {
		return closed.Is(io.EOF) // what lies below may be an io.EOF that was not meant
	}
	if errors.As(cause, new(*writeError)) {
		return false // io.EOF means an orderly end for Read only
	}
	return errors.Is(cause, ErrClosed) || errors.Is(cause, ErrShutdown) || errors.Is(cause, io.EOF)
}

// contextError is why ctx ended: its error, and its cause where that says more.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

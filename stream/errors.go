package stream

import (
	"errors"

	"github.com/duetrpc/duet/peer"
)

var (
	// ErrStopped is the result of a stream whose loop was left before the end.
	ErrStopped = errors.New("stream: stopped before the end")

	// ErrSlowConsumer is the result of a stream whose other end sent more than it had
	// credit for, and more than is kept. The items before were yielded.
	ErrSlowConsumer = errors.New("stream: items came faster than they were taken")

	// ErrEnded is returned for an item after the end: the handler has returned, or, of a
	// caller, the call was answered or its items were ended. The result of the call says
	// more.
	ErrEnded = errors.New("stream: ended")
)

// errNoToken is the answer to a call that does not say where items go, or come from. It
// is never changed.
var errNoToken = &peer.Error{Code: peer.InvalidParams, Message: "invalid params: no token for the items of the stream"}

// errNoPlace is the answer where the profile has no place for them. It is never changed.
var errNoPlace = &peer.Error{Code: peer.InvalidParams, Message: "invalid params: the protocol has no place for the items of a stream"}

// errItem is the answer of a handler that returns why an item of its caller could not
// be read. It is never changed.
var errItem = &peer.Error{Code: peer.InvalidParams, Message: "invalid params: an item of the stream does not fit"}

// errAgain is why whoever stands between the caller and the connection may not make
// the call of a stream at the same time twice, nor once more after an item went or came:
// items would come twice, too.
var errAgain = errors.New("stream: the call was made already")

// ItemError says that an item could not be written as JSON, or read from it.
type ItemError struct{ Err error }

func (e *ItemError) Error() string { return "stream: item: " + e.Err.Error() }
func (e *ItemError) Unwrap() error { return e.Err }

package resume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// Reason says why a session is over that was not ended in order.
type Reason uint8

// The reasons.
const (
	Unknown  Reason = iota // the accepting end does not know the session, or not as this principal's
	Expired                // nobody took it up in time
	Evicted                // too many sessions, or bytes, were without a socket
	Replaced               // somebody else has taken it up
	Mismatch               // the counts of both ends do not fit
	Stopped                // an end shut down while it had no socket
	Broken                 // the other end did not keep to the protocol
	reasons
)

var reasonNames = [reasons]string{
	"the other end does not know it", "it was longer without a socket than it is kept", "too many were without a socket",
	"somebody else has taken it up", "the counts of both ends do not fit",
	"an end shut down while it had no socket", "the other end broke the protocol",
}

// String returns the reason in words.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return "unknown reason"
}

// GapError is the cause of a connection whose session is over and was not ended by either
// end: of what was on its way, it is not known how much arrived. Calls that waited fail with
// it, handlers' contexts have it as their cause, and streams end with it.
type GapError struct {
	Reason Reason
	Err    error // what the last socket ended with, or what was wrong; nil if there is no more to say
}

func (e *GapError) Error() string {
	text := "resume: session lost: " + e.Reason.String()
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err, unless that would make a gap look like an orderly end.
func (e *GapError) Unwrap() error {
	for _, orderly := range []error{io.EOF, peer.ErrClosed, peer.ErrShutdown} {
		if errors.Is(e.Err, orderly) {
			return nil
		}
	}
	return e.Err
}

// WebSocketClose is how it is told.
func (e *GapError) WebSocketClose() (code int, reason string) {
	switch e.Reason {
	case Replaced:
		return codeReplaced, e.Reason.String()
	case Broken:
		return 1002, "protocol error"
	}
	return codeLost, e.Reason.String()
}

// Close codes of this protocol.
const (
	codeEnded    = 4100 // the session was ended in order; the reason begins with the code
	codeReplaced = 4101 // another socket has taken the session up
	codeLost     = 4102 // there is no such session
	codeDropped  = 4103 // the socket was given up, the session was not
)

// endedError is an orderly end that is told with another code, since its own would mean
// that the session goes on.
type endedError struct {
	code   int
	reason string
	err    error
}

func (e *endedError) Error() string { return e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

func (e *endedError) WebSocketClose() (code int, reason string) {
	return codeEnded, strings.TrimSpace(strconv.Itoa(e.code) + " " + e.reason)
}

// closer is what chooses a close code.
type closer interface {
	WebSocketClose() (code int, reason string)
}

// told is what the socket is closed with when cause ends the session.
func told(cause error) error {
	code, reason := 1011, ""
	var c closer
	if errors.As(cause, &c) {
		code, reason = c.WebSocketClose()
	}
	if !goesOn(code) {
		return cause
	}
	return &endedError{code, reason, cause}
}

// goesOn reports whether a session outlives a socket that was closed with code.
func goesOn(code int) bool {
	switch code {
	case 1001, 1006, 1011, 1012, 1013, codeDropped:
		return true
	}
	return false
}

// ending is what a socket's end means for the session: nil where that goes on.
func ending(err error, draining bool) error {
	var closed *wsconn.CloseError
	if !errors.As(err, &closed) {
		if errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
	switch closed.Code {
	case codeEnded:
		return original(closed)
	case codeReplaced:
		return &GapError{Reason: Replaced}
	case codeLost:
		return &GapError{Reason: Unknown}
	case 1001:
		if draining {
			return &GapError{Reason: Stopped, Err: err}
		}
	}
	if goesOn(closed.Code) {
		return nil
	}
	return err
}

// original is the close that codeEnded stands for.
func original(closed *wsconn.CloseError) error {
	number, reason, _ := strings.Cut(closed.Reason, " ")
	code, err := strconv.Atoi(number)
	if err != nil || code < 1000 || code > 4999 {
		return closed
	}
	return &wsconn.CloseError{Code: code, Reason: reason, Err: closed.Err}
}

// errLine is what is wrong with a line. What follows its first word may be a secret.
func errLine(text []byte) error {
	word, _, _ := bytes.Cut(text, []byte{' '})
	return fmt.Errorf("resume: bad line %.10q", word)
}

var (
	errHandshake = fmt.Errorf("resume: no handshake in time: %w", wsconn.ErrTryAgainLater)
	errStalled   = fmt.Errorf("resume: nothing acknowledged in time: %w", wsconn.ErrTryAgainLater)
	errClosed    = fmt.Errorf("resume: session closed: %w", &wsconn.CloseError{Code: 1000})
)

package wsconn

import (
	"fmt"
	"io"
	"net"
	"strings"
)

// CloseError is what ended a connection. Every Read and Write on an ended connection returns the same one.
//
// errors.Is finds in it:
//   - io.EOF, when the end was orderly: codes 1000, 1001 and 1005 (a close frame without a code);
//   - the cause of its Code (ErrMessageTooBig for 1009), whichever end it came from;
//   - net.ErrClosed, when this end's Conn.Close began it;
//   - what Err holds.
type CloseError struct {
	// Code of the close frame; 1005 if it had none, 1006 if there was no close frame.
	Code int
	// Reason of the close frame, valid UTF-8. The other end wrote it where Local is false: quote it when showing it.
	Reason string
	// Local says that this end ended the connection.
	Local bool
	// Err is what lies below: the cause given to Close, or the socket's error. Nil when there is nothing below.
	Err error

	called bool // by Conn.Close
}

func (e *CloseError) Error() string {
	by := "by the other end"
	switch {
	case e.Local:
		by = "by this end"
	case e.Code == codeAbnormal:
		by = "without a close frame"
	}
	text := fmt.Sprintf("wsconn: closed %s (%d", by, e.Code)
	if known, ok := causeOf(e.Code).(cause); ok && e.Code != codeAbnormal {
		text += " " + known.text
	}
	text += ")"
	if e.Reason != "" && !e.Local {
		text += fmt.Sprintf(", reason %q", e.Reason)
	}
	if e.Err != nil && e.Err != causeOf(e.Code) {
		text += ": " + strings.TrimPrefix(e.Err.Error(), "wsconn: ")
	}
	return text
}

// Is adds to the chain below Err what follows from the code and from who closed; see CloseError.
func (e *CloseError) Is(target error) bool {
	switch target {
	case nil:
		return false
	case io.EOF:
		return e.Code == codeNormal || e.Code == 1001 || e.Code == codeNoStatus
	case net.ErrClosed:
		return e.called
	}
	return causeOf(e.Code) == target
}

func (e *CloseError) Unwrap() error { return e.Err }

// WebSocketClose lets one connection be closed for the reason another one ended.
func (e *CloseError) WebSocketClose() (code int, reason string) { return e.Code, e.Reason }

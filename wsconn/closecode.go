package wsconn

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Close codes of RFC 6455 section 7.4.1 that this package handles by name.
const (
	codeNormal   = 1000
	codeNoStatus = 1005 // a close frame without a code; never on the wire
	codeAbnormal = 1006 // no close frame at all; never on the wire
	codeInternal = 1011
)

// A cause is why a connection ends: a close code and a text that may be shown to the other end.
type cause struct {
	code int
	text string
}

func (c cause) Error() string { return "wsconn: " + c.text }

// WebSocketClose makes every cause below fit for Conn.Close.
func (c cause) WebSocketClose() (code int, reason string) { return c.code, c.text }

// Why a connection ended. Each is found with errors.Is in what Read and Write return, at the end that noticed
// and, where it has a close code of its own, at the other end too. Each may be given to Conn.Close.
var (
	ErrGoingAway       error = cause{1001, "going away"}
	ErrProtocol        error = cause{1002, "protocol error"}
	ErrUnsupportedData error = cause{1003, "unsupported data"}
	ErrAbnormal        error = cause{codeAbnormal, "socket ended without a close frame"}
	ErrInvalidUTF8     error = cause{1007, "invalid UTF-8"}
	ErrPolicy          error = cause{1008, "policy violation"}
	ErrMessageTooBig   error = cause{1009, "message too big"}
	ErrInternal        error = cause{codeInternal, "internal error"}
	ErrServiceRestart  error = cause{1012, "service restart"}
	ErrTryAgainLater   error = cause{1013, "try again later"}

	// These two end a connection whose other end does not answer, so the socket is cut without a close frame.
	ErrPingTimeout  error = cause{codeInternal, "no pong in time"}
	ErrWriteTimeout error = cause{codeInternal, "write not done in time"}
)

// causeOf answers what a received code means locally: it is the table from close code to cause; nil for a code without a cause of its own.
func causeOf(code int) error {
	for _, err := range [...]error{
		ErrGoingAway, ErrProtocol, ErrUnsupportedData, ErrAbnormal, ErrInvalidUTF8,
		ErrPolicy, ErrMessageTooBig, ErrInternal, ErrServiceRestart, ErrTryAgainLater,
	} {
		if err.(cause).code == code {
			return err
		}
	}
	return nil
}

// closeFrame says what a close frame sent for cause must hold. A cause that does not choose by WebSocketClose
// is internal: its text stays at this end.
func closeFrame(cause error) (code int, reason string) {
	if cause == nil {
		return codeNormal, ""
	}
	var chosen interface {
		WebSocketClose() (code int, reason string)
	}
	if !errors.As(cause, &chosen) {
		return codeInternal, ""
	}
	code, reason = chosen.WebSocketClose()
	switch {
	case code == codeNoStatus: // passed on from another connection: orderly, with nothing said
		return codeNormal, ""
	case !sendable(code):
		return codeInternal, ""
	}
	return code, clip(reason)
}

// sendable reports whether a close frame may carry code (RFC 6455 section 7.4).
func sendable(code int) bool {
	switch code {
	case 1004, codeNoStatus, codeAbnormal:
		return false
	}
	return 1000 <= code && code <= 1014 || 3000 <= code && code <= 4999
}

// maxReason is what a control frame's 125 bytes leave beside the code (RFC 6455 section 5.5).
const maxReason = 123

// clip makes reason fit a close frame: valid UTF-8, cut between characters.
func clip(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) <= maxReason {
		return reason
	}
	n := maxReason
	for !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n]
}

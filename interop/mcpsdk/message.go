package mcpsdk

import (
	"errors"

	"github.com/duetrpc/duet/codec"
)

// MessageError ends a connection whose other end sent something that is no message
// of JSON-RPC 2.0, a batch included. The SDK has no way to answer such a thing and
// to go on. It is found with errors.As in what Wait of the session returns.
type MessageError struct {
	Err error // why; a *codec.SyntaxError where it is not JSON
}

func (e *MessageError) Error() string { return "mcpsdk: not a message: " + e.Err.Error() }

func (e *MessageError) Unwrap() error { return e.Err }

// WebSocketClose is what the other end is told (RFC 6455 sections 7.4.1 and 8.1).
func (e *MessageError) WebSocketClose() (code int, reason string) {
	if errors.Is(e.Err, codec.ErrUTF8) {
		return 1007, "text is not UTF-8"
	}
	return 1008, "not a JSON-RPC message"
}

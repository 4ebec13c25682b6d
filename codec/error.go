package codec

import (
	"encoding/json"
	"strconv"
)

// A Code is the code of an error object. JSON-RPC 2.0 section 5.1 reserves
// -32768 to -32000 for the protocol; all other integers are the application's.
type Code int64

// The codes that JSON-RPC 2.0 section 5.1 defines.
const (
	ParseError     Code = -32700 // the text is not JSON
	InvalidRequest Code = -32600 // the JSON is not a request
	MethodNotFound Code = -32601 // no such method
	InvalidParams  Code = -32602 // the method does not take these params
	InternalError  Code = -32603 // the called end failed
)

// String returns the message that JSON-RPC 2.0 section 5.1 gives to the code,
// and the decimal digits of every other code.
func (c Code) String() string {
	switch c {
	case ParseError:
		return "Parse error"
	case InvalidRequest:
		return "Invalid Request"
	case MethodNotFound:
		return "Method not found"
	case InvalidParams:
		return "Invalid params"
	case InternalError:
		return "Internal error"
	}
	return strconv.FormatInt(int64(c), 10)
}

// An Error is the error object of a response (JSON-RPC 2.0 section 5.1).
//
// An Error that Decode made owns its bytes and may be kept. Data is the raw
// JSON of the data member, to the last byte; nil means that there is none,
// which differs from the JSON value null.
type Error struct {
	Code    Code
	Message string
	Data    json.RawMessage
}

// Error names code and message. It leaves Data out: data may be large, or meant
// for other eyes than those that read a log.
func (e *Error) Error() string {
	return "jsonrpc error " + strconv.FormatInt(int64(e.Code), 10) + ": " + e.Message
}

// Is reports whether target is an *Error with the same code, so that
// errors.Is(err, &Error{Code: MethodNotFound}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t != nil && t.Code == e.Code
}

package codec

import (
	"strconv"
	"unicode/utf8"
)

// OpenCall appends a call up to the place of its params, so that a caller can
// marshal them straight into the message and end it with [Close]. Neither this
// nor any function below checks that a value is JSON; see [Check]. Of the rules
// NoVersion counts; nil means base.
func OpenCall(dst []byte, rules *Rules, id int64, method string) []byte {
	return append(appendCallHead(dst, rules, id, method), `,"params":`...)
}

// OpenNotification appends a notification up to the place of its params.
func OpenNotification(dst []byte, rules *Rules, method string) []byte {
	return append(appendNotificationHead(dst, rules, method), `,"params":`...)
}

// OpenResult appends a success response up to the place of its result. An
// absent id is written as null.
func OpenResult(dst []byte, rules *Rules, id ID) []byte {
	return append(appendResponseHead(dst, rules, id), `,"result":`...)
}

// Close appends the end of a message that an Open function began.
func Close(dst []byte) []byte { return append(dst, '}') }

// AppendCall appends a call. Nil params means no params member.
func AppendCall(dst []byte, rules *Rules, id int64, method string, params []byte) []byte {
	if params == nil {
		return Close(appendCallHead(dst, rules, id, method))
	}
	return Close(append(OpenCall(dst, rules, id, method), params...))
}

// AppendNotification appends a notification. Nil params means no params member.
func AppendNotification(dst []byte, rules *Rules, method string, params []byte) []byte {
	if params == nil {
		return Close(appendNotificationHead(dst, rules, method))
	}
	return Close(append(OpenNotification(dst, rules, method), params...))
}

// AppendResult appends a success response. A nil result is written as null,
// since a success must have one (JSON-RPC 2.0 section 5), an absent id too.
func AppendResult(dst []byte, rules *Rules, id ID, result []byte) []byte {
	dst = OpenResult(dst, rules, id)
	if result == nil {
		dst = append(dst, "null"...)
	}
	return Close(append(dst, result...))
}

// AppendError appends an error response. An absent id is written as null, nil
// Data as no data member, and a nil e as a bare [InternalError].
func AppendError(dst []byte, rules *Rules, id ID, e *Error) []byte {
	if e == nil {
		e = &Error{Code: InternalError, Message: InternalError.String()}
	}
	dst = append(appendResponseHead(dst, rules, id), `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, "}}"...)
}

// The heads write the version first, then the id, then the method: the order
// in which the specification shows them, and a reader of logs expects them.

func appendCallHead(dst []byte, rules *Rules, id int64, method string) []byte {
	dst = append(appendVersion(dst, rules), `"id":`...)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, `,"method":`...)
	return AppendString(dst, method)
}

func appendNotificationHead(dst []byte, rules *Rules, method string) []byte {
	dst = append(appendVersion(dst, rules), `"method":`...)
	return AppendString(dst, method)
}

func appendResponseHead(dst []byte, rules *Rules, id ID) []byte {
	dst = append(appendVersion(dst, rules), `"id":`...)
	return id.AppendTo(dst)
}

func appendVersion(dst []byte, rules *Rules) []byte {
	if rules != nil && rules.NoVersion {
		return append(dst, '{')
	}
	return append(dst, `{"jsonrpc":"2.0",`...)
}

// AppendString appends s as a JSON string. It escapes only what RFC 8259
// section 7 demands; each byte that is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0 // s[:done] is written; what follows is copied in runs
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[done:i]...), "\uFFFD"...)
				done = i + 1
			}
			i += size
			continue
		}
		dst = appendEscape(append(dst, s[done:i]...), c)
		i++
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}

// appendEscape appends the shortest escape of an ASCII character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		c = 'b'
	case '\f':
		c = 'f'
	case '\n':
		c = 'n'
	case '\r':
		c = 'r'
	case '\t':
		c = 't'
	case '"', '\\':
	default:
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xF])
	}
	return append(dst, '\\', c)
}

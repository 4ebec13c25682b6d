package codec

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrUTF8 is what a [SyntaxError] wraps when the text is not valid UTF-8. It is
// told apart because a WebSocket text message that is not UTF-8 ends the
// connection (RFC 6455 section 8.1), where broken JSON does not.
var ErrUTF8 = errors.New("codec: text is not valid UTF-8")

// A SyntaxError says that a text is not one JSON value, and where.
type SyntaxError struct {
	Offset int    // index of the offending byte; the length of the text where it ends too early
	Reason string // what is wrong there
	utf8   bool   // the text is not UTF-8 either
}

// Error gives reason and offset. It quotes nothing of the text.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("codec: %s at byte %d", e.Reason, e.Offset)
}

// Unwrap returns [ErrUTF8] when the text is not valid UTF-8, and nil otherwise.
func (e *SyntaxError) Unwrap() error {
	if e.utf8 {
		return ErrUTF8
	}
	return nil
}

// fail records why the text is refused and returns -1, the end that no value
// has. Invalid UTF-8 anywhere outranks the fault at hand, since it costs the
// connection: without this look a sender could hide it behind broken JSON.
func (s *scanner) fail(offset int, reason string) int {
	s.err = &SyntaxError{Offset: offset, Reason: reason}
	if i := invalidUTF8(s.text); i >= 0 {
		s.err = &SyntaxError{Offset: i, Reason: "invalid UTF-8", utf8: true}
	}
	return -1
}

// failToken is fail for a byte that may not stand at offset, which is where
// the text may have ended instead.
func (s *scanner) failToken(offset int, want string) int {
	if offset >= len(s.text) {
		return s.fail(len(s.text), "unexpected end of text, want "+want)
	}
	return s.fail(offset, "unexpected character, want "+want)
}

// invalidUTF8 returns the index of the first byte that is not part of valid
// UTF-8, or -1.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

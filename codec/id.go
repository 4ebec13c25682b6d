package codec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// maxID bounds the literal of an id in bytes: an id is kept for as long as its
// call is open, and written into every reply.
const maxID = 256

type idKind uint8

const (
	absentID idKind = iota
	nullID
	numberID
	stringID
)

// An ID is the id of a call or a response: the exact literal, so that it can be
// echoed byte for byte. The zero ID is an absent one, which is not the same as
// a null one. IDs are compared by their [Key].
//
// An ID that Decode made aliases the decoded text and is valid as long as that
// is; Clone makes one that may be kept. An ID is immutable and may be shared.
type ID struct {
	kind    idKind
	literal []byte // nil when absent or null
}

// NumberID returns the id written as the decimal digits of n.
func NumberID(n int64) ID { return ID{numberID, strconv.AppendInt(nil, n, 10)} }

// StringID returns the id written as the JSON string s. A literal longer than
// 256 bytes is refused by the end that receives it.
func StringID(s string) ID { return ID{stringID, AppendString(nil, s)} }

// NullID returns the id null. An error reply carries it when the id of the
// request is not known (JSON-RPC 2.0 section 5).
func NullID() ID { return ID{kind: nullID} }

// ParseID returns the id whose literal is given: a JSON string, number or null
// of at most 256 bytes, with no space around it. It copies literal. The error
// is a [*SyntaxError] where literal is no JSON value.
func ParseID(literal []byte) (ID, error) {
	if len(literal) > maxID {
		return ID{}, fmt.Errorf("codec: %v", IDTooLong)
	}
	s := scanner{text: literal, limit: 1}
	end := s.value(0, 0)
	switch {
	case end < 0:
		return ID{}, s.err
	case end < len(literal):
		s.fail(end, "text after the value")
		return ID{}, s.err
	}
	id, fault := idOf(literal)
	if fault != NoFault {
		return ID{}, errors.New("codec: " + fault.String())
	}
	return id.Clone(), nil
}

// idOf makes an id, which aliases literal, of a valid JSON value. JSON-RPC 2.0
// section 4 knows strings, numbers and null.
func idOf(literal []byte) (ID, Fault) {
	if len(literal) > maxID {
		return ID{}, IDTooLong
	}
	switch c := literal[0]; {
	case c == '"':
		return ID{stringID, literal}, NoFault
	case c == 'n':
		return NullID(), NoFault
	case startsNumber(c):
		return ID{numberID, literal}, NoFault
	}
	return ID{}, IDInvalid
}

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool { return id.kind == absentID }

// IsNull reports whether the id is present and null.
func (id ID) IsNull() bool { return id.kind == nullID }

// String returns the literal: with its quotes for a string, "" when absent.
func (id ID) String() string {
	if id.kind == nullID {
		return "null"
	}
	return string(id.literal)
}

// AppendTo appends the literal to dst; null when the id is absent, since a
// response must have an id (JSON-RPC 2.0 section 5).
func (id ID) AppendTo(dst []byte) []byte {
	if id.literal == nil {
		return append(dst, "null"...)
	}
	return append(dst, id.literal...)
}

// Clone returns the same id with bytes of its own.
func (id ID) Clone() ID { return ID{id.kind, slices.Clone(id.literal)} }

// Int64 returns the exact value of a number id when that is an integer in the
// range of int64: 101, 101.0 and 1.01e2 are. A string id never is.
func (id ID) Int64() (int64, bool) {
	if id.kind != numberID {
		return 0, false
	}
	return integer(id.literal)
}

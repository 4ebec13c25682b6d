package codec

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Eight bytes at once: each constant repeats one byte.
const (
	ones        = 0x0101010101010101
	highs       = 0x80 * ones
	spaces      = ' ' * ones
	quotes      = '"' * ones
	backslashes = '\\' * ones
)

// str passes over the string at text[i].
//
// It looks for the bytes that need a decision, eight at a time: a quote, a
// backslash, a control character. Subtracting wraps a byte that is below the
// bound, or equal to the byte looked for, which shows in its high bit; bytes
// that had it set before are not meant. A borrow can only mark bytes after one
// that is marked rightly, so the first mark is exact.
//
// UTF-8 is checked at the end, and only in strings that have, or stand next
// to, a byte outside ASCII.
func (s *scanner) str(i int) int {
	text := s.text
	from := i
	i++
	var seen uint64
	for {
		for i+8 <= len(text) {
			x := binary.LittleEndian.Uint64(text[i:])
			seen |= x
			stop := ((x - spaces) | ((x ^ quotes) - ones) | ((x ^ backslashes) - ones)) &^ x & highs
			if stop != 0 {
				i += bits.TrailingZeros64(stop) / 8
				break
			}
			i += 8
		}
		for i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\' {
			seen |= uint64(text[i])
			i++
		}
		switch c := at(text, i); {
		case i >= len(text):
			return s.fail(i, "string is not closed")
		case c == '"':
			i++
			if seen&highs != 0 && !utf8.Valid(text[from:i]) {
				return s.fail(from, "invalid UTF-8")
			}
			return i
		case c < ' ':
			return s.fail(i, "control character in a string")
		}
		if i = s.escape(i); i < 0 {
			return -1
		}
	}
}

// escape passes over the escape at text[i]. A surrogate without its partner is
// within the grammar of RFC 8259.
func (s *scanner) escape(i int) int {
	switch at(s.text, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if c := at(s.text, j); !digit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return s.failToken(j, "a hexadecimal digit")
			}
		}
		return i + 6
	}
	return s.failToken(i+1, "an escape")
}

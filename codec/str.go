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
	backslashes = '\\' * ones
	flip        = ('"' ^ ' ') * ones
	belowQuotes = (' ' + 1) * ones
)

// special marks the bytes of x that need a decision: a quote, a control character,
// a backslash, and what is not ASCII.
//
// Subtracting wraps a byte that is below the bound, which shows in its high bit.
// With one bit flipped the quote trades places with the space, next to the control
// characters, so that one bound is for both. A borrow can only mark bytes after one
// that is marked rightly, so the first mark is exact.
func special(x uint64) uint64 {
	return (((x ^ flip) - belowQuotes) | ((x ^ backslashes) - ones) | x) & highs
}

// plain returns the index of the first byte from i on that may need a decision, or
// len(text). Of a text of fewer than 16 bytes it returns i.
func plain(text []byte, i int) int {
	b := text[i:]
	for len(b) >= 16 {
		x := special(binary.LittleEndian.Uint64(b))
		y := special(binary.LittleEndian.Uint64(b[8:]))
		if x|y != 0 {
			// Which of the two it is cannot be foretold, so there is no branch: no
			// mark in x counts as place 8, and only then that in y is added.
			n := bits.TrailingZeros64(x) / 8
			return len(text) - len(b) + n + n/8*(bits.TrailingZeros64(y)/8)
		}
		b = b[16:]
	}
	if len(b) == 0 || len(text) < 16 {
		return len(text) - len(b)
	}
	// The last bytes are looked at together with those before them, which count for
	// nothing; one of them can mark the first byte that does, where that needs none.
	last := len(text) - 16
	before := 8 * (16 - len(b))
	x := special(binary.LittleEndian.Uint64(text[last:])) & (^uint64(0) << before)
	y := special(binary.LittleEndian.Uint64(text[last+8:])) & (^uint64(0) << max(0, before-64))
	n := bits.TrailingZeros64(x) / 8
	return last + n + n/8*(bits.TrailingZeros64(y)/8)
}

// block is how many bytes of a string marks looks at together.
const block = 64

// marks has a bit for each byte of b that needs a decision, the first in the low
// bits, and perhaps for one behind such a byte that needs none: see special.
func marks(b *[block]byte) uint64 {
	x0 := special(binary.LittleEndian.Uint64(b[0:]))
	x1 := special(binary.LittleEndian.Uint64(b[8:]))
	x2 := special(binary.LittleEndian.Uint64(b[16:]))
	x3 := special(binary.LittleEndian.Uint64(b[24:]))
	x4 := special(binary.LittleEndian.Uint64(b[32:]))
	x5 := special(binary.LittleEndian.Uint64(b[40:]))
	x6 := special(binary.LittleEndian.Uint64(b[48:]))
	x7 := special(binary.LittleEndian.Uint64(b[56:]))
	// The product has the eight marks of a word side by side in its highest byte.
	const gather = 0x0002040810204081
	return x0*gather>>56 | x1*gather>>56<<8 | x2*gather>>56<<16 | x3*gather>>56<<24 |
		x4*gather>>56<<32 | x5*gather>>56<<40 | x6*gather>>56<<48 | x7*gather>>56<<56
}

// str passes over the string at text[i], whose UTF-8 it checks on the way.
func (s *scanner) str(i int) int {
	end := plain(s.text, i+1)
	if at(s.text, end) == '"' {
		return end + 1
	}
	return s.strFrom(i, end)
}

// strFrom is str for the rest of a string from text[i] on, where a byte needs a
// decision. There will be more of them, so they are looked for in a block at once: a
// branch for every few bytes is one that cannot be foretold.
func (s *scanner) strFrom(from, i int) int {
	text := s.text
	for len(text)-i > block { // so that each byte has one behind it
		m := marks((*[block]byte)(text[i:]))
		next := i + block
		for m != 0 {
			j := i + bits.TrailingZeros64(m)
			switch c := text[j]; {
			case c == '\\' && shortEscapes[text[j+1]]:
				j += 2
			case c == '"':
				return j + 1
			default:
				if c >= 0x80 { // most often the case, so decide is spared
					if n := runes(text[j:]); n > 0 {
						j += n
						break
					}
				}
				if j = s.decide(from, j); j < 0 {
					return -1
				}
			}
			next = max(next, j)
			m &= ^uint64(0) << (j - i)
		}
		i = next
	}
	for {
		i = plain(text, i)
		if at(text, i) == '"' {
			return i + 1
		}
		if i = s.decide(from, i); i < 0 {
			return -1
		}
	}
}

// decide passes over what stands at text[i], in the string that begins at from, and
// is not its end.
func (s *scanner) decide(from, i int) int {
	switch c := at(s.text, i); {
	case c == '\\':
		return s.escape(i)
	case c >= 0x80:
		n := runes(s.text[i:])
		if n == 0 {
			return s.fail(from, "invalid UTF-8")
		}
		return i + n
	case c >= ' ': // marked for the byte before it, or in a short text
		return i + 1
	case i >= len(s.text):
		return s.fail(i, "string is not closed")
	default:
		return s.fail(i, "control character in a string")
	}
}

// runes returns how many bytes at the front of b are characters outside ASCII, in
// UTF-8 (RFC 3629 section 4), and 0 where the last of these is broken. It looks at
// four bytes at once, the first in the low bits, as long as there are so many.
func runes(b []byte) int {
	i := 0
	for len(b)-i >= 4 {
		x := binary.LittleEndian.Uint32(b[i:])
		switch {
		case x&0x80 == 0:
			return i
		case x&0xC0C0F0 == 0x8080E0: // three bytes
			if y := x & 0x200F; y == 0 || y == 0x200D { // too long a form; a surrogate
				return 0
			}
			i += 3
		case x&0xC0E0 == 0x80C0: // two
			if x&0x1E == 0 { // too long a form
				return 0
			}
			i += 2
		case x&0xC0C0C0F8 == 0x808080F0: // four
			if y := x&7<<6 | x>>8&0x3F; y < 0x10 || y > 0x10F { // too long a form; past U+10FFFF
				return 0
			}
			i += 4
		default:
			return 0
		}
	}
	for i < len(b) && b[i] >= 0x80 {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return 0
		}
		i += n
	}
	return i
}

// escape passes over the escape at text[i]. A surrogate without its partner is
// within the grammar of RFC 8259.
func (s *scanner) escape(i int) int {
	c := at(s.text, i+1)
	if shortEscapes[c] {
		return i + 2
	}
	if c != 'u' {
		return s.failToken(i+1, "an escape")
	}
	for j := i + 2; j < i+6; j++ {
		if c := at(s.text, j); !digit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return s.failToken(j, "a hexadecimal digit")
		}
	}
	return i + 6
}

// shortEscapes holds what stands behind a backslash in an escape of two bytes. Which
// of them it is cannot be foretold, so there is no branch for each.
var shortEscapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

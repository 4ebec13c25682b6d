package codec

import (
	"bytes"
	"slices"
)

// A scanner reads the JSON grammar of RFC 8259, with a bound on depth. Its
// functions take the index where something starts and return the index after
// it, or -1 when the text is refused, and then err says why.
//
// It never recurses: what containers are open is kept as bits. The slices are
// scratch that outlives a text, so that the next one needs no allocation.
type scanner struct {
	text   []byte
	limit  int  // containers that may be open at once
	unique bool // duplicate names count at every depth
	err    *SyntaxError

	twice   set // the members that stand twice
	twiceAt int // where the object ends that had a name twice

	spill  []uint64 // open containers of value beyond the innermost 64
	names  [][]byte // names of open objects that may turn out to be duplicates
	frames []int    // where in names each open object starts
}

// keepNames bounds how many names the scratch keeps room for between texts, so
// that one large object does not cost its memory for the connection's life.
const keepNames = 1 << 10

// reset makes the scanner ready for text, or lets go of it when that is nil.
func (s *scanner) reset(text []byte) {
	s.text, s.err = text, nil
	s.spill, s.frames = s.spill[:0], s.frames[:0]
	clear(s.names)
	s.names = s.names[:0]
	if cap(s.names) > keepNames {
		s.names = nil
	}
}

// value passes over the value at text[i], inside depth open containers. Space
// before it has been passed over, space after it is left to the caller.
//
// Each turn of the outer loop begins where a value must stand, or a name where
// the innermost container is an object. It passes over one scalar, or opens one
// container; then the inner loop closes whatever ends behind it.
func (s *scanner) value(i, depth int) int {
	text := s.text
	// Bit 0 of open is 1 where the innermost container is an object, bit 1 is
	// for the one around it, and so on; full words of it go to spill.
	var open uint64
	level := 0
	for {
		if level > 0 && open&1 == 1 {
			if i = s.name(i, s.unique); i < 0 {
				return -1
			}
		}
		switch c := at(text, i); c {
		case '"':
			i = s.str(i)
		case '{', '[':
			if depth+level >= s.limit {
				return s.fail(i, "nesting too deep")
			}
			// The word is full: what it says is needed again when this
			// container is closed.
			if level > 0 && level%64 == 0 {
				s.spill = append(s.spill, open)
			}
			open <<= 1
			if c == '{' {
				open |= 1
				if s.unique {
					s.frames = append(s.frames, len(s.names))
				}
			}
			level++
			i = space(text, i+1)
			// In ASCII each bracket is closed by the one two places on. An
			// empty container ends as a scalar would; else its first item is
			// next, and that a comma may not stand there follows from that.
			if at(text, i) != c+2 {
				continue
			}
		case 't':
			i = s.word(i, "true")
		case 'f':
			i = s.word(i, "false")
		case 'n':
			i = s.word(i, "null")
		default:
			i = s.number(i)
		}
		if i < 0 {
			return -1
		}
		// A value has ended: close the containers that end with it.
		for {
			if level == 0 {
				return i
			}
			i = space(text, i)
			c := at(text, i)
			if c == ',' {
				i = space(text, i+1)
				break
			}
			if open&1 == 1 {
				if c != '}' {
					return s.failToken(i, "comma or }")
				}
				if s.unique {
					last := len(s.frames) - 1
					s.closeNames(s.frames[last], i, nestedMember)
					s.frames = s.frames[:last]
				}
			} else if c != ']' {
				return s.failToken(i, "comma or ]")
			}
			i++
			level--
			open >>= 1
			if level > 0 && level%64 == 0 {
				last := len(s.spill) - 1
				open, s.spill = s.spill[last], s.spill[:last]
			}
		}
	}
}

// name passes over a member's name and its colon, to the value. With note set
// the name is remembered for closeNames.
func (s *scanner) name(i int, note bool) int {
	from := i
	if at(s.text, i) != '"' {
		return s.failToken(i, "a member name")
	}
	if i = s.str(i); i < 0 {
		return -1
	}
	if note {
		s.names = append(s.names, unquote(s.text[from:i]))
	}
	return s.colon(i)
}

// colon passes over the colon after a name, and the space around it.
func (s *scanner) colon(i int) int {
	if i+1 < len(s.text) && s.text[i] == ':' && s.text[i+1] > ' ' {
		return i + 1
	}
	i = space(s.text, i)
	if at(s.text, i) != ':' {
		return s.failToken(i, "colon")
	}
	return space(s.text, i+1)
}

// closeNames forgets the names from base on, which are those of the object that
// ends at text[end], and marks member as standing twice if two are equal.
// Sorting keeps the cost of an object with a million names at n log n, whatever
// the names are.
func (s *scanner) closeNames(base, end int, member member) {
	names := s.names[base:]
	if len(names) > 1 {
		slices.SortFunc(names, bytes.Compare)
		for i := 1; i < len(names); i++ {
			if bytes.Equal(names[i-1], names[i]) {
				s.twice.add(member)
				s.twiceAt = end
				break
			}
		}
	}
	clear(names)
	s.names = s.names[:base]
}

// word passes over true, false or null. What follows it is checked by whoever
// looks for a comma, a bracket or the end: "nulll" fails there.
func (s *scanner) word(i int, word string) int {
	end := i + len(word)
	if end > len(s.text) || string(s.text[i:end]) != word {
		return s.failToken(i, "a value")
	}
	return end
}

// number passes over a number (RFC 8259 section 6); anything that starts no
// other value comes here, too, and is refused. The grammar is all that counts:
// how large the number is, and whether a float could hold it, is for the reader
// of the value.
func (s *scanner) number(i int) int {
	text := s.text
	c := at(text, i)
	if c == '-' {
		i++
		c = at(text, i)
		if !digit(c) {
			return s.failToken(i, "a digit")
		}
	}
	if !digit(c) {
		return s.failToken(i, "a value")
	}
	i++
	if c == '0' {
		if digit(at(text, i)) {
			return s.fail(i, "digit after a leading zero")
		}
	} else {
		i = digits(text, i)
	}
	if at(text, i) == '.' {
		i++
		if !digit(at(text, i)) {
			return s.failToken(i, "a digit")
		}
		i = digits(text, i)
	}
	if at(text, i)|0x20 == 'e' {
		i++
		if c := at(text, i); c == '+' || c == '-' {
			i++
		}
		if !digit(at(text, i)) {
			return s.failToken(i, "a digit")
		}
		i = digits(text, i)
	}
	return i
}

// at returns text[i], and 0 beyond the end: a byte that no token starts with.
func at(text []byte, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// space returns the index of the first byte from i on that is no white space,
// which RFC 8259 section 2 limits to these four. A byte order mark is none.
func space(text []byte, i int) int {
	for i < len(text) && text[i] <= ' ' && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// startsNumber reports whether a valid value that starts with c is a number.
func startsNumber(c byte) bool { return c == '-' || digit(c) }

func digit(c byte) bool { return c-'0' <= 9 }

// digits returns the index of the first byte from i on that is no digit.
func digits(text []byte, i int) int {
	for i < len(text) && digit(text[i]) {
		i++
	}
	return i
}

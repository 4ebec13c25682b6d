package wire

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds recursion. One case sends 20,000 levels and permits them to
// come back, which is twice what encoding/json reads.
const maxDepth = 100_000

// kind tells what a value is, by the first character of such a text.
type kind byte

const (
	object  kind = '{'
	array   kind = '['
	text    kind = '"'
	number  kind = '0'
	literal kind = 'n' // null, true, false
)

// value is a JSON text taken apart with nothing lost that a case compares:
// numbers keep their text, and members their order.
type value struct {
	kind  kind
	raw   []byte   // as it was written; part of the text that was parsed
	text  string   // an unescaped string, a number's text, or the literal
	names []string // of an object, unescaped
	items []value  // elements of an array, or member values beside names
}

// String returns the value as it was written.
func (v value) String() string { return string(v.raw) }

// member returns the value of an object's member.
func (v value) member(name string) (value, bool) {
	if v.kind == object {
		for i, n := range v.names {
			if n == name {
				return v.items[i], true
			}
		}
	}
	return value{}, false
}

// parseJSON reads exactly one JSON text (RFC 8259). A member name that stands
// twice in one object is an error at every depth, compared after unescaping.
// The value keeps parts of b, which must not change any more.
func parseJSON(b []byte) (value, error) {
	if !utf8.Valid(b) {
		return value{}, errors.New("not UTF-8")
	}
	// Checked once here, so that strings may be copied byte by byte below.
	s := scanner{b: b}
	s.space()
	v, err := s.value(0)
	if err != nil {
		return value{}, err
	}
	if s.space(); s.at < len(b) {
		return value{}, fmt.Errorf("something follows the JSON text at byte %d", s.at)
	}
	return v, nil
}

// scanner walks over one JSON text. It is written here because the text is
// what is being judged: a lenient reader would hide the fault of the server.
type scanner struct {
	b  []byte
	at int
}

// peek returns the byte at hand, or 0 at the end; 0 is never legal in JSON.
func (s *scanner) peek() byte {
	if s.at < len(s.b) {
		return s.b[s.at]
	}
	return 0
}

// space steps over JSON whitespace, which is less than Unicode's.
func (s *scanner) space() {
	for s.at < len(s.b) && isSpace(s.b[s.at]) {
		s.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// bad says where the text stops being JSON.
func (s *scanner) bad() error {
	if s.at >= len(s.b) {
		return errors.New("the JSON text is cut off")
	}
	return fmt.Errorf("not JSON at byte %d", s.at)
}

// value reads one value and remembers how it was written.
func (s *scanner) value(depth int) (value, error) {
	start := s.at
	v, err := s.any(depth)
	v.raw = s.b[start:s.at]
	return v, err
}

// any decides by the first character; depth counts the brackets around it.
func (s *scanner) any(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch c := s.peek(); {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '"':
		str, err := s.string()
		return value{kind: text, text: str}, err
	case c == '-' || isDigit(c):
		return s.number()
	}
	for _, word := range []string{"null", "true", "false"} {
		if end := s.at + len(word); end <= len(s.b) && string(s.b[s.at:end]) == word {
			s.at = end
			return value{kind: literal, text: word}, nil
		}
	}
	return value{}, s.bad()
}

func (s *scanner) object(depth int) (value, error) {
	v := value{kind: object}
	// A map and not a search through names: a hostile object may have a million.
	seen := map[string]bool{}
	more, err := s.open('}')
	for ; more && err == nil; more, err = s.next('}') {
		name, err := s.string()
		if err != nil {
			return v, err
		}
		if seen[name] {
			return v, fmt.Errorf("member %q stands twice in one object", name)
		}
		seen[name] = true
		if s.space(); s.peek() != ':' {
			return v, s.bad()
		}
		s.at++
		s.space()
		item, err := s.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.names, v.items = append(v.names, name), append(v.items, item)
	}
	return v, err
}

func (s *scanner) array(depth int) (value, error) {
	v := value{kind: array}
	more, err := s.open(']')
	for ; more && err == nil; more, err = s.next(']') {
		item, err := s.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
	return v, err
}

// open steps over an opening bracket and says whether an element follows.
func (s *scanner) open(end byte) (bool, error) {
	s.at++
	s.space()
	if s.peek() == end {
		s.at++
		return false, nil
	}
	return true, nil
}

// next steps over a comma or the closing bracket after an element.
func (s *scanner) next(end byte) (bool, error) {
	s.space()
	c := s.peek()
	if c != ',' && c != end {
		return false, s.bad()
	}
	s.at++
	s.space()
	return c == ',', nil
}

// number reads the grammar of RFC 8259 section 6; what may not follow a number
// is noticed by whoever reads on.
func (s *scanner) number() (value, error) {
	start := s.at
	if s.peek() == '-' {
		s.at++
	}
	// A zero stands alone: in 01 the 1 is what follows the number.
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return value{}, s.bad()
	}
	if s.peek() == '.' {
		if s.at++; !s.digits() {
			return value{}, s.bad()
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return value{}, s.bad()
		}
	}
	return value{kind: number, text: string(s.b[start:s.at])}, nil
}

// digits steps over digits and says whether there was one.
func (s *scanner) digits() bool {
	start := s.at
	for isDigit(s.peek()) {
		s.at++
	}
	return s.at > start
}

// string reads a string and unescapes it. A lone surrogate keeps its three
// bytes, so that two different ones stay two different names.
func (s *scanner) string() (string, error) {
	if s.peek() != '"' {
		return "", s.bad()
	}
	s.at++
	var out []byte
	for {
		switch c := s.peek(); {
		case c == '"':
			s.at++
			return string(out), nil
		// Also 0 from peek: the text ended inside the string.
		case c < 0x20:
			return "", s.bad()
		case c != '\\':
			s.at++
			out = append(out, c)
			continue
		}
		s.at++
		c := s.peek()
		if c != 'u' {
			plain, ok := escapes(c)
			if !ok {
				return "", s.bad()
			}
			s.at++
			out = append(out, plain)
			continue
		}
		r, ok := s.unit()
		if !ok {
			return "", s.bad()
		}
		if utf16.IsSurrogate(r) {
			// A high half wants its low half right behind it; anything else stays.
			mark := s.at
			if low, ok := s.lowUnit(); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
				out = utf8.AppendRune(out, utf16.DecodeRune(r, low))
				continue
			}
			s.at = mark
			out = append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
}

// lowUnit reads the second half of a surrogate pair, if one is written here.
func (s *scanner) lowUnit() (rune, bool) {
	if s.peek() != '\\' {
		return 0, false
	}
	if s.at++; s.peek() != 'u' {
		return 0, false
	}
	return s.unit()
}

// unit reads "uXXXX"; at is on the u.
func (s *scanner) unit() (rune, bool) {
	if s.at+5 > len(s.b) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s.b[s.at+1:s.at+5]), 16, 16)
	if err != nil {
		return 0, false
	}
	s.at += 5
	return rune(n), true
}

// escapes maps the short escapes of RFC 8259 section 7.
func escapes(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

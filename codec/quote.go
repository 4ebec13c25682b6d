package codec

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote returns the characters of a valid JSON string literal. The result
// aliases the literal where that has no escapes.
//
// A surrogate escape without its partner is legal JSON and stands for no
// character. It becomes the three bytes that UTF-8 would use if it encoded
// surrogates, so that different names stay different and none of them equals a
// name that is valid UTF-8.
func unquote(literal []byte) []byte {
	last := len(literal) - 1
	raw := literal[1:last:last]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(out, raw...)
		}
		out = append(out, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(raw)
			raw = raw[4:]
			// Only a high half followed at once by a low one is a pair.
			if utf16.IsSurrogate(r) && len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(raw[2:])); pair != utf8.RuneError {
					r, raw = pair, raw[6:]
				}
			}
			// AppendRune would write U+FFFD for all 2,048 of them.
			if utf16.IsSurrogate(r) {
				out = append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
			} else {
				out = utf8.AppendRune(out, r)
			}
		default: // quote, backslash, slash
			out = append(out, c)
		}
	}
}

// readable returns what unquote returned as text for people: each lone
// surrogate is replaced by U+FFFD, which has the same three bytes of room.
func readable(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	// The literal was valid UTF-8, so what is not comes from such an escape:
	// these two bytes begin nothing else, and text is a copy that may change.
	for i := 0; i+2 < len(text); i++ {
		if text[i] == 0xED && text[i+1] >= 0xA0 {
			copy(text[i:], "\uFFFD")
		}
	}
	return string(text)
}

// hex4 reads the four digits of a valid \u escape.
func hex4(digits []byte) rune {
	var r rune
	for _, c := range digits[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

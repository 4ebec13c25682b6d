package resume

import (
	"bytes"
	"strconv"
)

// Subprotocol is the name of the WebSocket subprotocol (RFC 6455 section 1.9).
const Subprotocol = "duet.resume.v1"

// Lines are the messages of this protocol, words of ASCII with one space between. All else
// is the application's. The first byte tells them apart: JSON-RPC begins with a brace, a
// bracket, or white space.
const (
	wordOpen    = "open"    // dialling end: a new session
	wordOpened  = "opened"  // ID PARK: there it is, and is kept PARK ms without a socket
	wordPlain   = "plain"   // there are no sessions here for you; what follows is plain
	wordResume  = "resume"  // ID ATTEMPT COUNT: dialling end: that session; COUNT messages have arrived here
	wordResumed = "resumed" // COUNT: there it is; COUNT messages have arrived here
	wordAck     = "ack"     // COUNT: that many have arrived here
)

// isLine reports whether text is a line.
func isLine(text []byte) bool { return len(text) > 0 && 'a' <= text[0] && text[0] <= 'z' }

// line makes one of its words.
func line(word string, args ...any) []byte {
	text := []byte(word)
	for _, arg := range args {
		text = append(text, ' ')
		switch arg := arg.(type) {
		case string:
			text = append(text, arg...)
		case uint64:
			text = strconv.AppendUint(text, arg, 10)
		}
	}
	return text
}

// words takes a line apart. It reports false if that is not word with n arguments.
func words(text []byte, word string, n int) (args [][]byte, ok bool) {
	args = bytes.Split(text, []byte{' '})
	return args[1:], len(args) == n+1 && string(args[0]) == word
}

// isID reports whether text may be an id.
func isID(text []byte) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(text) == idSize
}

// number reads a count: digits without a leading zero, less than 2^63.
func number(text []byte) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > 19 || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, n < 1<<63
}

// ackOf reads an ack.
func ackOf(text []byte) (n uint64, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte(wordAck+" "))
	if !ok {
		return 0, false
	}
	return number(rest)
}

package wire

import (
	"fmt"
	"strings"
)

// message is what the server sent as one WebSocket message.
type message struct {
	text   string
	bare   string // without the whitespace outside strings
	value  value
	fault  string // why it is not one JSON text without duplicate members
	binary bool
	used   bool // counted by a wait or a capture
}

// messageOf reads a message. A broken one is kept with its fault: it is shown,
// an expression may still mean it, and the case fails by the rules.
func messageOf(ev event) message {
	m := message{text: string(ev.payload), bare: bare(ev.payload), binary: ev.op == opBinary}
	v, err := parseJSON(ev.payload)
	if err != nil {
		m.fault = err.Error()
	}
	m.value = v
	return m
}

// rule says what is wrong with the message whatever the case, or "".
func (m message) rule() string {
	switch {
	case m.binary:
		return "is binary, not text"
	case m.fault != "":
		return "is not one proper JSON text: " + m.fault
	}
	return ""
}

// isRequest says whether m asks for a method of ours, and with which id.
func (m message) isRequest(method string) (id value, ok bool) {
	name, _ := m.value.member("method")
	id, ok = m.value.member("id")
	return id, ok && m.fault == "" && name.kind == text && name.text == method
}

// String shortens a message for people; the whole of it is in the Outcome.
func (m message) String() string { return short(m.text) }

// short cuts what is too long to read, at the border of a character.
func short(s string) string {
	const most = 240
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
}

// bare removes the whitespace between the tokens of a JSON text.
func bare(b []byte) string {
	out := make([]byte, 0, len(b))
	inString, escaped := false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && isSpace(c):
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// probe is the call that proves that the connection survived, and a barrier
// for what came before.
type probe struct {
	text   string
	id     value
	params value // of kind 0: any result will do
}

// probeOf reads the text of a probe. It must have an id, or its answer could
// not be told from the messages of the case.
func probeOf(s string) (probe, error) {
	v, err := parseJSON([]byte(s))
	if err != nil {
		return probe{}, fmt.Errorf("probe: %w", err)
	}
	p := probe{text: s}
	p.id, _ = v.member("id")
	p.params, _ = v.member("params")
	if p.id.kind != text && p.id.kind != number {
		return p, fmt.Errorf("probe: want a string or a number as id in %s", s)
	}
	return p, nil
}

// answers says whether m carries the probe's id without being a request, and
// if so what is wrong with it as an answer.
func (p probe) answers(m message) (ok bool, problem string) {
	id, has := m.value.member("id")
	_, request := m.value.member("method")
	if !has || request || m.fault != "" || id.kind != p.id.kind || id.text != p.id.text {
		return false, ""
	}
	// "*" as a pattern: any result.
	want := value{kind: text, text: "*"}
	if p.params.kind != 0 {
		want = p.params
	}
	version, _ := m.value.member("jsonrpc")
	result, has := m.value.member("result")
	if !has || len(m.value.names) != 3 || version.kind != text || version.text != "2.0" || !matchValue(want, result, nil, false) {
		return true, "the probe was answered with " + m.String()
	}
	return true, ""
}

package wire

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Pattern says which messages of the server are meant. It is made by Parse and
// safe for concurrent use.
type Pattern struct {
	src string
	re  *regexp.Regexp // of a string at the top level
	v   value          // of anything else
}

// String returns the pattern as it stands in the case.
func (p *Pattern) String() string { return p.src }

// captures holds the ids taken from requests of the server, by their name.
type captures map[string]value

// patternOf checks v, so that a mistake in a pattern is an error of the file
// and not a case that can never pass.
func patternOf(v value) (*Pattern, error) {
	p := &Pattern{src: v.String(), v: v}
	if v.kind == text {
		// Texts at the top are expressions: no JSON-RPC message is a bare string.
		re, err := regexp.Compile(v.text)
		if err != nil {
			return nil, err
		}
		p.re = re
		return p, nil
	}
	return p, check(v)
}

// check looks for operators that can not work, at every depth.
func check(v value) error {
	if choice, ok := operator(v, "$in"); ok && (choice.kind != array || len(choice.items) == 0) {
		return errors.New("$in: want an array that is not empty")
	}
	if n, ok := operator(v, "$len"); ok {
		if _, err := strconv.ParseUint(n.text, 10, 31); n.kind != number || err != nil {
			return errors.New("$len: want a count")
		}
	}
	for i, item := range v.items {
		if err := check(item); err != nil {
			if v.kind == object {
				return fmt.Errorf("%s: %w", v.names[i], err)
			}
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// operator returns the operand of an object with the one member name.
func operator(v value, name string) (value, bool) {
	if len(v.names) != 1 {
		return value{}, false
	}
	return v.member(name)
}

// match says whether p means the message. A message that is not one JSON text
// is meant by a regular expression at most.
func (p *Pattern) match(m message, caps captures) bool {
	if p.re != nil {
		return p.re.MatchString(m.bare)
	}
	return m.fault == "" && matchValue(p.v, m.value, caps, true)
}

// matchValue compares without converting: a number is its text. top is true
// for the whole message and for the choices of a $in that stands for it.
func matchValue(p, v value, caps captures, top bool) bool {
	if choice, ok := operator(p, "$in"); ok {
		for _, c := range choice.items {
			if matchValue(c, v, caps, top) {
				return true
			}
		}
		return false
	}
	if n, ok := operator(p, "$len"); ok {
		return v.kind == array && strconv.Itoa(len(v.items)) == n.text
	}
	if p.kind == text {
		if p.text == "*" {
			return true
		}
		// A name that was never captured is a string like any other, and matches
		// only itself.
		if name, ok := reference(p.text); ok {
			if id, ok := caps[name]; ok {
				return v.kind == id.kind && v.text == id.text
			}
		}
	}
	if p.kind != v.kind {
		return false
	}
	switch p.kind {
	case object:
		return matchObject(p, v, caps)
	case array:
		if len(p.items) != len(v.items) {
			return false
		}
		// Elements are compared deeper down, where order counts again.
		fits := func(i, j int) bool { return matchValue(p.items[j], v.items[i], caps, false) }
		if top && responses(p) {
			return assign(len(v.items), len(p.items), fits)
		}
		return inOrder(len(v.items), len(p.items), fits)
	}
	return p.text == v.text
}

// matchObject wants exactly the members of p, save those marked with "?".
func matchObject(p, v value, caps captures) bool {
	found := 0
	for i, name := range p.names {
		name, optional := strings.CutPrefix(name, "?")
		item, ok := v.member(name)
		if !ok && !optional {
			return false
		}
		if ok {
			if found++; !matchValue(p.items[i], item, caps, false) {
				return false
			}
		}
	}
	return found == len(v.names) // no member beyond those of the pattern
}

// reference returns R for "${R}".
func reference(s string) (string, bool) {
	name, ok := strings.CutPrefix(s, "${")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}

// responses says whether v is an array of response objects, which may come in
// any order (JSON-RPC 2.0 section 6).
func responses(v value) bool {
	for _, item := range v.items {
		_, id := item.member("id")
		_, result := item.member("result")
		_, failed := item.member("error")
		if !id || result == failed {
			return false
		}
	}
	return true
}

// assign says whether each of n things can have one of m places of its own.
// It finds augmenting paths (Kuhn), since a greedy choice may give away the
// only place of a later thing: "*" would take what an exact pattern needs.
func assign(n, m int, fits func(i, j int) bool) bool {
	owner := make([]int, m) // 1 + the thing at place j
	var place func(i int, tried []bool) bool
	place = func(i int, tried []bool) bool {
		for j := range m {
			if tried[j] || !fits(i, j) {
				continue
			}
			tried[j] = true
			if owner[j] == 0 || place(owner[j]-1, tried) {
				owner[j] = i + 1
				return true
			}
		}
		return false
	}
	// Every thing is placed once; a later one may push it to another place.
	for i := range n {
		if !place(i, make([]bool, m)) {
			return false
		}
	}
	return true
}

// inOrder says whether each of n things fits the place of the same number.
func inOrder(n, m int, fits func(i, j int) bool) bool {
	for i := range n {
		if i >= m || !fits(i, i) {
			return false
		}
	}
	return true
}

package wire

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// maxLine bounds one line of a file of cases.
const maxLine = 16 << 20

// Case is one conversation. It is made by Parse and safe for concurrent use as
// long as nobody changes it.
type Case struct {
	ID     string // name, unique in its file
	Topic  string // group
	Note   string // what the case is about
	Source string // where the problem was seen

	Send   []Item     // sent in this order
	Expect []*Pattern // every message that must come back, and no other
	Close  []int      // permitted codes of the server's close; nil: the connection stays up
	Strict bool       // messages must come in the order of Expect

	Alt      []Alternative // other permitted outcomes
	Forbid   []*Pattern    // what no message may match, whatever the outcome
	Requires []string      // methods and properties beyond the base methods
}

// Alternative is a permitted outcome of a case beside the first. Its fields
// mean what they mean in Case.
type Alternative struct {
	Expect []*Pattern
	Close  []int
	Strict bool
	Why    string // what a server that does this has chosen
}

// outcomes returns the first expectation and the alternatives, in this order.
func (c *Case) outcomes() []Alternative {
	return append([]Alternative{{Expect: c.Expect, Close: c.Close, Strict: c.Strict}}, c.Alt...)
}

// Parse reads cases, one JSON object per line; empty lines are skipped. It
// stops at the first mistake, and its error names the line and the member. The
// cases belong to the caller.
func Parse(r io.Reader) ([]Case, error) {
	var cases []Case
	lines := map[string]int{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	n := 0
	for in.Scan() {
		n++
		if len(in.Bytes()) == 0 {
			continue
		}
		c, err := caseOf([]byte(in.Text()))
		if err == nil && lines[c.ID] > 0 {
			err = fmt.Errorf("id: %s stands at line %d already", c.ID, lines[c.ID])
		}
		if err != nil {
			return nil, fmt.Errorf("wire: line %d: %w", n, err)
		}
		lines[c.ID] = n
		cases = append(cases, c)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("wire: line %d: %w", n+1, err)
	}
	return cases, nil
}

// caseOf reads one line. Errors carry the path of the member, such as
// alt[0]: expect[1]; Parse puts the line in front.
func caseOf(line []byte) (Case, error) {
	v, err := parseJSON(line)
	if err != nil {
		return Case{}, err
	}
	f, err := fieldsOf(v)
	if err != nil {
		return Case{}, err
	}
	c := Case{ID: f.str("id"), Topic: f.str("topic"), Note: f.str("note"), Source: f.str("source")}
	// A case without a name could not be told apart in a report.
	if f.err == nil && c.ID == "" {
		return c, errors.New("id: missing")
	}
	for i, item := range f.list("send") {
		it, err := itemOf(item)
		f.fail(fmt.Sprintf("send[%d]", i), err)
		c.Send = append(c.Send, it)
	}
	first := f.outcome()
	c.Expect, c.Close, c.Strict = first.Expect, first.Close, first.Strict
	for i, item := range f.list("alt") {
		alt, err := alternativeOf(item)
		f.fail(fmt.Sprintf("alt[%d]", i), err)
		c.Alt = append(c.Alt, alt)
	}
	c.Forbid = f.patterns("forbid")
	c.Requires = f.strs("requires")
	return c, f.done()
}

// alternativeOf reads an element of alt.
func alternativeOf(v value) (Alternative, error) {
	f, err := fieldsOf(v)
	if err != nil {
		return Alternative{}, err
	}
	why := f.str("why")
	a := f.outcome()
	a.Why = why
	return a, f.done()
}

// outcome takes the members that a case and an alternative share.
func (f *fields) outcome() Alternative {
	a := Alternative{Expect: f.patterns("expect"), Close: f.codes("expect_close")}
	none := f.flag("expect_none")
	switch order := f.str("order"); order {
	case "strict":
		a.Strict = true
	case "", "any":
	default:
		f.fail("order", fmt.Errorf("want any or strict, not %q", order))
	}
	// Silence must be meant: an expectation left out by mistake would pass.
	if none && len(a.Expect) > 0 {
		f.fail("expect_none", errors.New("true beside messages in expect"))
	}
	if !none && len(a.Expect) == 0 && a.Close == nil {
		f.fail("expect", errors.New("nothing expected; silence is written expect_none"))
	}
	return a
}

// fields takes the members of an object one by one. It keeps the first error
// and then goes on with zero values, and it knows what nobody asked for.
type fields struct {
	left map[string]value
	err  error
}

// fieldsOf starts on the members of v. Their names are unique already, since
// parseJSON refuses an object in which one stands twice.
func fieldsOf(v value) (*fields, error) {
	if v.kind != object {
		return nil, errors.New("want an object")
	}
	f := &fields{left: map[string]value{}}
	for i, name := range v.names {
		f.left[name] = v.items[i]
	}
	return f, nil
}

// fail keeps err, with its place, unless an earlier one is kept or err is nil.
func (f *fields) fail(where string, err error) {
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("%s: %w", where, err)
	}
}

// done returns the first error, or one that names a member without meaning.
func (f *fields) done() error {
	for name := range f.left {
		f.fail(name, errors.New("unknown member"))
	}
	return f.err
}

// has says whether the member is there and nobody has taken it.
func (f *fields) has(name string) bool {
	_, ok := f.left[name]
	return ok
}

// take removes the member; ok is false when it is absent or of another kind.
func (f *fields) take(name string, k kind, want string) (value, bool) {
	v, ok := f.left[name]
	delete(f.left, name)
	if ok && v.kind != k {
		f.fail(name, errors.New("want "+want))
		return value{}, false
	}
	return v, ok
}

// str, flag, num, bytes, list and strs take a member of their kind. Absent
// members are zero values: what must be there is checked where it is used.
func (f *fields) str(name string) string {
	v, _ := f.take(name, text, "a string")
	return v.text
}

func (f *fields) flag(name string) bool {
	v, ok := f.take(name, literal, "true or false")
	if ok && v.text == "null" {
		f.fail(name, errors.New("want true or false"))
	}
	return v.text == "true"
}

func (f *fields) num(name string, lo, hi int) int {
	v, ok := f.take(name, number, "a number")
	// Atoi refuses 1.0 and 1e2, which are whole, but nobody writes them.
	n, err := strconv.Atoi(v.text)
	if ok && (err != nil || n < lo || n > hi) {
		f.fail(name, fmt.Errorf("want a whole number from %d to %d, not %s", lo, hi, v.text))
	}
	return n
}

func (f *fields) bytes(name string) []byte {
	b, err := base64.StdEncoding.DecodeString(f.str(name))
	f.fail(name, err)
	return b
}

func (f *fields) list(name string) []value {
	v, _ := f.take(name, array, "an array")
	return v.items
}

func (f *fields) strs(name string) []string {
	var out []string
	for i, item := range f.list(name) {
		if item.kind != text {
			f.fail(fmt.Sprintf("%s[%d]", name, i), errors.New("want a string"))
		}
		out = append(out, item.text)
	}
	return out
}

// patterns takes a list of patterns and compiles them.
func (f *fields) patterns(name string) []*Pattern {
	var out []*Pattern
	for i, item := range f.list(name) {
		p, err := patternOf(item)
		f.fail(fmt.Sprintf("%s[%d]", name, i), err)
		out = append(out, p)
	}
	return out
}

// codes takes a close code, a list of them, or null.
func (f *fields) codes(name string) []int {
	v := f.left[name]
	delete(f.left, name)
	// A single code is read as a list of one.
	items := []value{v}
	switch v.kind {
	case 0:
		return nil
	case literal:
		if v.text == "null" {
			return nil
		}
	case array:
		items = v.items
	}
	var out []int
	for _, item := range items {
		n, err := strconv.Atoi(item.text)
		if item.kind != number || err != nil || n < 1000 || n > 4999 {
			f.fail(name, errors.New("want close codes from 1000 to 4999, or null"))
			return nil
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		f.fail(name, errors.New("an empty list permits nothing"))
	}
	return slices.Clip(out)
}

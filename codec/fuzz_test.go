package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/duetrpc/duet/codec"
)

// anyRules has each rule from a bit, so that fuzzing turns them.
func anyRules(bits uint16) *codec.Rules {
	on := func(n int) bool { return bits>>n&1 == 1 }
	r := &codec.Rules{
		NoBatch: on(0), NoNullID: on(1), IntegerID: on(2), ObjectParams: on(3),
		ObjectResult: on(4), NullParams: on(5), NoDuplicates: on(6),
		Depth: 10000, // as deep as the parsers that this one is measured by
	}
	if on(7) {
		r.IDBits = 32
	}
	if on(8) {
		r.BatchItems = 2
	}
	if on(9) {
		r.NotInBatch = []string{"m"}
	}
	return r
}

func addTexts(f *testing.F) {
	for _, row := range grammar {
		f.Add([]byte(row.text), uint16(0))
	}
	for i, row := range classified {
		f.Add([]byte(version(row.text)), uint16(i))
		f.Add([]byte(version("[1,"+row.text+"]")), uint16(i*37))
	}
}

// Whatever the bytes and the rules: Decode does not panic, accepts what other
// parsers accept, and says of every message something that holds together.
func FuzzDecode(f *testing.F) {
	addTexts(f)
	var reused codec.Envelope
	f.Fuzz(func(t *testing.T, text []byte, bits uint16) {
		rules := anyRules(bits)
		before := bytes.Clone(text)
		var e codec.Envelope
		err := e.Decode(text, rules)
		if !bytes.Equal(text, before) {
			t.Fatalf("Decode(%q) changed the text", before)
		}
		if want := json.Valid(text) && utf8.Valid(text); (err == nil) != want {
			t.Fatalf("Decode(%q) = %v, encoding/json accepts: %t", text, err, want)
		}
		lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
		if want := jsontext.Value(text).IsValid(lenient...) && utf8.Valid(text); (err == nil) != want {
			t.Fatalf("Decode(%q) = %v, jsontext accepts: %t", text, err, want)
		}
		if !rules.NoDuplicates || err != nil {
			if checked := codec.Check(text, rules); (checked == nil) != (err == nil) {
				t.Fatalf("Check(%q) = %v, Decode = %v", text, checked, err)
			}
		} else if utf8.Valid(text) && !bytes.Contains(bytes.ToLower(text), []byte(`\ud`)) {
			strict := jsontext.Value(text).IsValid()
			if checked := codec.Check(text, rules); (checked == nil) != strict {
				t.Fatalf("Check(%q) = %v, jsontext finds no duplicates: %t", text, checked, strict)
			}
		}
		if again := reused.Decode(text, rules); (again == nil) != (err == nil) || len(reused.Messages) != len(e.Messages) {
			t.Fatalf("Decode(%q) differs in a reused envelope", text)
		}
		if err != nil {
			var syntax *codec.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(text) || syntax.Reason == "" {
				t.Fatalf("Decode(%q) = %#v, want a SyntaxError within the text", text, err)
			}
			if errors.Is(err, codec.ErrUTF8) == utf8.Valid(text) {
				t.Fatalf("Decode(%q) = %v, valid UTF-8: %t", text, err, utf8.Valid(text))
			}
			return
		}
		if single := !e.Batch; single && len(e.Messages) != 1 || (e.Fault != codec.NoFault) != (len(e.Messages) == 0) {
			t.Fatalf("Decode(%q) = batch %t, %v, %d messages", text, e.Batch, e.Fault, len(e.Messages))
		}
		for i, m := range e.Messages {
			if show(m) != show(reused.Messages[i]) {
				t.Fatalf("Decode(%q) differs in a reused envelope: %s, %s", text, show(m), show(reused.Messages[i]))
			}
			coherent(t, m)
		}
	})
}

// coherent fails unless the fields of m fit its kind.
func coherent(t *testing.T, m codec.Message) {
	t.Helper()
	refused := m.Kind == codec.Invalid || m.Kind == codec.BadNotification || m.Kind == codec.BadResponse
	response := m.Kind == codec.Response
	request := m.Kind == codec.Call || m.Kind == codec.Notification
	ok := refused == (m.Fault != codec.NoFault) &&
		response == (m.Result != nil || m.Error != nil) &&
		(m.Result == nil || m.Error == nil) &&
		(!request || m.Method != nil) &&
		(request || m.Params == nil)
	switch m.Kind {
	case codec.Call, codec.Response, codec.Bare, codec.Invalid:
		ok = ok && !m.ID.IsZero()
	case codec.Notification, codec.BadNotification:
		ok = ok && m.ID.IsZero()
	}
	for _, raw := range [][]byte{m.Params, m.Result} {
		ok = ok && (raw == nil || json.Valid(raw))
	}
	if m.Error != nil && m.Error.Data != nil {
		ok = ok && json.Valid(m.Error.Data)
	}
	if !m.ID.IsZero() {
		back, err := codec.ParseID([]byte(m.ID.String()))
		ok = ok && err == nil && back.Key() == m.ID.Key() && back.String() == m.ID.String()
	}
	if !ok {
		t.Fatalf("incoherent message: %s", show(m))
	}
}

// What was decoded and can be written again reads as the same.
func FuzzRoundTrip(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, text []byte, bits uint16) {
		rules := anyRules(bits)
		var e codec.Envelope
		if e.Decode(text, rules) != nil {
			return
		}
		for _, m := range e.Messages {
			var again []byte
			switch n, own := m.ID.Int64(); {
			case m.Kind == codec.Call && own && utf8.Valid(m.Method):
				// An id of our own is written in plain digits.
				m.ID = codec.NumberID(n)
				again = codec.AppendCall(nil, nil, n, string(m.Method), m.Params)
			case m.Kind == codec.Notification && utf8.Valid(m.Method):
				again = codec.AppendNotification(nil, nil, string(m.Method), m.Params)
			case m.Kind == codec.Response && m.Error != nil:
				again = codec.AppendError(nil, nil, m.ID, m.Error)
			case m.Kind == codec.Response:
				again = codec.AppendResult(nil, nil, m.ID, m.Result)
			default:
				continue
			}
			if got, want := show(one(t, string(again), rules)), show(m); got != want {
				t.Fatalf("%q was written as %s and reads as\n %s, want\n %s", text, again, got, want)
			}
		}
	})
}

// An id's literal survives, and keys agree with exact arithmetic.
func FuzzID(f *testing.F) {
	seeds := []string{`1`, `1.0`, `-0`, `0e9`, `10e-1`, `1e2`, `100`, `9007199254740993`, `9223372036854775808`, `"a"`, `"\u0061"`, `"\ud800"`, `"\ufffd"`, `null`, `1e400`, `-1.5e-3`, `true`, `1e9999999999999999999`}
	for i, seed := range seeds {
		f.Add(seed, seeds[(i+1)%len(seeds)])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, errX := codec.ParseID([]byte(a))
		y, errY := codec.ParseID([]byte(b))
		if errX != nil || errY != nil {
			return
		}
		if x.String() != a || string(x.AppendTo(nil)) != a || x.Clone().String() != a {
			t.Fatalf("ParseID(%s) has the literal %s", a, x)
		}
		m := one(t, version(`{v,"method":"m","id":`+a+`}`), nil)
		if m.Kind != codec.Call || m.ID.String() != a || m.ID.Key() != x.Key() {
			t.Fatalf("id %s was decoded as %s", a, show(m))
		}
		same := x.Key() == y.Key()
		if a == b && !same {
			t.Fatalf("Key(%s) differs from itself", a)
		}
		switch {
		case a[0] == 'n' || b[0] == 'n':
			if same != (a == b) {
				t.Fatalf("Key(%s) == Key(%s) is %t", a, b, same)
			}
		case a[0] == '"' && b[0] == '"':
			var s, r string
			if json.Unmarshal([]byte(a), &s) != nil || json.Unmarshal([]byte(b), &r) != nil {
				t.Fatalf("encoding/json refuses %s or %s", a, b)
			}
			// encoding/json loses what half surrogate it was.
			if exact := !strings.ContainsRune(s+r, utf8.RuneError); same != (s == r) && exact || same && s != r {
				t.Fatalf("Key(%s) == Key(%s) is %t, want %t", a, b, same, s == r)
			}
		case a[0] == '"' || b[0] == '"':
			if same {
				t.Fatalf("Key(%s) == Key(%s)", a, b)
			}
		default:
			p, okP := rational(a)
			q, okQ := rational(b)
			if okP && okQ && same != (p.Cmp(q) == 0) {
				t.Fatalf("Key(%s) == Key(%s) is %t, want %t", a, b, same, !same)
			}
			if okP {
				n, ok := x.Int64()
				if want := p.IsInt() && p.Num().IsInt64(); ok != want || ok && n != p.Num().Int64() {
					t.Fatalf("ParseID(%s).Int64() = %d, %t, want %t", a, n, ok, want)
				}
			}
		}
	})
}

// rational is the exact value of a number whose exponent is modest.
func rational(literal string) (*big.Rat, bool) {
	if _, exponent, found := strings.Cut(strings.ToLower(literal), "e"); found {
		if n, err := strconv.Atoi(exponent); err != nil || n < -2000 || n > 2000 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(literal)
}

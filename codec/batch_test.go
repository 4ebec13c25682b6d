package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/duetrpc/duet/codec"
)

func TestBatch(t *testing.T) {
	const call, note = `{v,"method":"m","id":1}`, `{v,"method":"n"}`
	for _, row := range []struct {
		name  string
		text  string
		rules codec.Rules
		fault codec.Fault
		want  []string
	}{
		{"empty", `[]`, codec.Rules{}, codec.BatchEmpty, nil},
		{"empty with space", " [ \n] ", codec.Rules{}, codec.BatchEmpty, nil},
		{"one call", `[` + call + `]`, codec.Rules{}, codec.NoFault, []string{`call id=1 method=m`}},
		{"space", " [ " + call + " , " + note + " ] ", codec.Rules{}, codec.NoFault, []string{`call id=1 method=m`, `notification method=n`}},
		{"one scalar", `[1]`, codec.Rules{}, codec.NoFault, []string{`invalid message: the message is not an object id=null`}},
		{"nested array", `[[` + call + `]]`, codec.Rules{}, codec.NoFault, []string{`invalid message: the message is not an object id=null`}},
		{"all kinds", `[` + call + `,` + note + `,{v,"id":2,"result":3},{"foo":"boo"},null,{v,"method":"m","params":1},{v,"id":4,"error":5},{v,"id":6}]`, codec.Rules{}, codec.NoFault, []string{
			`call id=1 method=m`,
			`notification method=n`,
			`response id=2 result=3`,
			`invalid message: jsonrpc is not "2.0" id=null`,
			`invalid message: the message is not an object id=null`,
			`bad notification: params is not an array or an object method=m`,
			`bad response: error is not an object id=4`,
			`bare id id=6`,
		}},
		{"the same id twice is for the peer", `[` + call + `,` + call + `]`, codec.Rules{}, codec.NoFault, []string{`call id=1 method=m`, `call id=1 method=m`}},
		{"refused", `[` + call + `]`, codec.Rules{NoBatch: true}, codec.BatchForbidden, nil},
		{"refused empty", `[]`, codec.Rules{NoBatch: true}, codec.BatchForbidden, nil},
		{"at the limit", `[` + call + `,` + note + `]`, codec.Rules{BatchItems: 2}, codec.NoFault, []string{`call id=1 method=m`, `notification method=n`}},
		{"over the limit", `[` + call + `,` + note + `,1]`, codec.Rules{BatchItems: 2}, codec.BatchTooLong, nil},
		{"not in a batch", `[` + call + `,` + note + `]`, codec.Rules{NotInBatch: []string{"x", "m"}}, codec.NoFault, []string{`invalid message: method may not stand in a batch id=1 method=m`, `notification method=n`}},
		{"not in a batch, notification", `[` + call + `,` + note + `]`, codec.Rules{NotInBatch: []string{"n"}}, codec.NoFault, []string{`call id=1 method=m`, `bad notification: method may not stand in a batch method=n`}},
		{"nested duplicate in one element", `[{v,"method":"m","params":{"a":1,"a":1},"id":1},` + call + `]`, codec.Rules{NoDuplicates: true}, codec.NoFault, []string{`invalid message: a nested object has a member that stands twice id=1 method=m`, `call id=1 method=m`}},
		{"nested duplicate outside of objects", `[[{"a":1,"a":1}],` + call + `]`, codec.Rules{NoDuplicates: true}, codec.NoFault, []string{`invalid message: the message is not an object id=null`, `call id=1 method=m`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := version(row.text)
			var e codec.Envelope
			if err := e.Decode([]byte(text), &row.rules); err != nil {
				t.Fatalf("Decode(%s) = %v", text, err)
			}
			if !e.Batch || e.Fault != row.fault || len(e.Messages) != len(row.want) {
				t.Fatalf("Decode(%s) = batch %t, %v, %d messages, want %v, %d messages", text, e.Batch, e.Fault, len(e.Messages), row.fault, len(row.want))
			}
			for i, m := range e.Messages {
				if got := show(m); got != row.want[i] {
					t.Errorf("Decode(%s) has at %d\n %s, want\n %s", text, i, got, row.want[i])
				}
			}
		})
	}
}

// A batch is whole or nothing: one broken element, anywhere, leaves none.
func TestBatchWhole(t *testing.T) {
	good := version(`{v,"method":"m","id":1}`)
	for _, rules := range []codec.Rules{{}, {NoBatch: true}, {BatchItems: 1}} {
		for _, text := range []string{
			`[` + good + `,{"jsonrpc":"2.0","method"`,
			`[` + good + `,{"jsonrpc":"2.0","method"]`,
			`[` + good + `,]`,
			`[` + good + `,,` + good + `]`,
			`[` + good + ` ` + good + `]`,
			`[` + good + `,` + good,
			`[` + good + `}`,
			`[` + good + `,` + good + `]]`,
			`[` + good + `,` + good + `,01]`,
			`[` + good + `,` + good + `,` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `]`,
			`[`,
			`[,]`,
			`[]]`,
		} {
			var e codec.Envelope
			var syntax *codec.SyntaxError
			if err := e.Decode([]byte(text), &rules); !errors.As(err, &syntax) {
				t.Errorf("Decode(%.80s) = %v, want a SyntaxError", text, err)
			}
			if e.Batch || e.Fault != codec.NoFault || len(e.Messages) != 0 {
				t.Errorf("Decode(%.80s) left %d messages, want an empty envelope", text, len(e.Messages))
			}
		}
	}
}

// Four million elements are scanned, but no more than the limit are ever held,
// and the room for those is given back with the next text.
func TestBatchFlood(t *testing.T) {
	var e codec.Envelope
	flood := []byte("[" + strings.Repeat("1,", 4<<20) + "1]")
	if err := e.Decode(flood, nil); err != nil || e.Fault != codec.BatchTooLong || len(e.Messages) != 0 {
		t.Fatalf("Decode of 4 Mi elements = %v, %v, want BatchTooLong", err, e.Fault)
	}
	if got := cap(e.Messages); got > 64 {
		t.Errorf("the envelope kept room for %d messages, want 64 at most", got)
	}
	exact := []byte("[" + strings.Repeat("1,", 4095) + "1]")
	if err := e.Decode(exact, nil); err != nil || len(e.Messages) != 4096 {
		t.Fatalf("Decode of 4096 elements = %v, %d messages", err, len(e.Messages))
	}
	if err := e.Decode(append(exact[:len(exact)-1], ",1]"...), nil); err != nil || e.Fault != codec.BatchTooLong {
		t.Fatalf("Decode of 4097 elements = %v, %v, want BatchTooLong", err, e.Fault)
	}
	if err := e.Decode([]byte("1"), nil); err != nil || cap(e.Messages) > 64 {
		t.Errorf("after a single message the envelope has room for %d, want 64 at most", cap(e.Messages))
	}
}

// An Envelope forgets the text before, whatever that was.
func TestEnvelopeReuse(t *testing.T) {
	texts := []string{
		`[{v,"method":"m","id":1},1,2,3]`, `{v,"id":1,"error":{"code":1,"message":"m","data":1}}`, `[1`, `{}`,
		`{v,"method":"m","id":1,"params":[],"x":1,"x":2}`, `[]`, `{v,"id":1,"result":1}`, "\"\xff\"",
		`{v,"method":"m","params":{"a":{"a":1,"b":[{"c":`, `{v,"method":"m"}`, strings.Repeat(`{"a":[`, 400),
	}
	rules := &codec.Rules{NoDuplicates: true, BatchItems: 3}
	var reused codec.Envelope
	for _, before := range texts {
		for _, text := range texts {
			before, text := []byte(version(before)), []byte(version(text))
			var fresh codec.Envelope
			want := fresh.Decode(text, rules)
			_ = reused.Decode(before, rules)
			got := reused.Decode(text, rules)
			if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
				t.Errorf("Decode(%.60s) after %.60s = %v, want %v", text, before, got, want)
			}
			if reused.Batch != fresh.Batch || reused.Fault != fresh.Fault || len(reused.Messages) != len(fresh.Messages) {
				t.Fatalf("Decode(%.60s) after %.60s differs from a fresh envelope", text, before)
			}
			for i, m := range reused.Messages {
				if got, want := show(m), show(fresh.Messages[i]); got != want {
					t.Errorf("Decode(%.60s) after %.60s has %s, want %s", text, before, got, want)
				}
			}
		}
	}
}

// A handler that appends to what it was given does not write into the text.
func TestMessageCapacity(t *testing.T) {
	for _, short := range []string{`{v,"method":"m","params":[1],"id":1}`, `{v,"result":[2],"id":1}`} {
		text := []byte(version(short))
		var e codec.Envelope
		if err := e.Decode(text, nil); err != nil {
			t.Fatal(err)
		}
		m := e.Messages[0]
		for _, field := range [][]byte{m.Method, m.Params, m.Result} {
			_ = append(field, 'x')
		}
		if string(text) != version(short) {
			t.Errorf("appending to the fields made the text %s, want %s", text, version(short))
		}
	}
}

// A name repeated in an object of very many costs no quadratic time.
func TestDuplicateFlood(t *testing.T) {
	var b strings.Builder
	b.WriteString(version(`{v,"method":"m"`))
	for i := range 200000 {
		b.WriteString(`,"`)
		b.WriteString(strings.Repeat("k", i%7))
		b.WriteString(codec.NumberID(int64(i)).String())
		b.WriteString(`":0`)
	}
	if m := one(t, b.String()+"}", nil); m.Kind != codec.Notification {
		t.Errorf("200,000 different extra members: %s, want a notification", show(m))
	}
	if m := one(t, b.String()+`,"0":1}`, nil); m.Fault != codec.UnknownTwice {
		t.Errorf("200,000 members and one twice: %s, want it refused", m.Fault)
	}
}

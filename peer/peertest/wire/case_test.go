package wire_test

import (
	"strings"
	"testing"

	"github.com/duetrpc/duet/peer/peertest/wire"
)

func TestCases(t *testing.T) {
	cases, err := wire.Cases()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 173 {
		t.Errorf("Cases() = %d cases, want 173", len(cases))
	}
	for _, c := range cases {
		if c.Topic == "" || c.Note == "" || c.Source == "" || len(c.Send) == 0 {
			t.Errorf("case %s says too little: %+v", c.ID, c)
		}
		for i, a := range c.Alt {
			if a.Why == "" {
				t.Errorf("case %s: alternative %d has no why", c.ID, i+1)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"not JSON", `{"id":`, "cut off"},
		{"not an object", `[]`, "want an object"},
		{"no id", `{"send":[],"expect_none":true}`, "id: missing"},
		{"id of another kind", `{"id":1,"send":[],"expect_none":true}`, "id: want a string"},
		{"id twice", `{"id":"ok","expect_none":true}`, "id: ok stands at line 1 already"},
		{"member twice", `{"id":"a","id":"b"}`, `member "id" stands twice`},
		{"unknown member", `{"id":"a","expect_none":true,"Send":[]}`, "Send: unknown member"},
		{"nothing expected", `{"id":"a","send":[],"expect":[]}`, "expect: nothing expected"},
		{"silence with messages", `{"id":"a","expect":[1],"expect_none":true}`, "expect_none: true beside"},
		{"no such order", `{"id":"a","expect":[1],"order":"loose"}`, `order: want any or strict, not "loose"`},
		{"expression", `{"id":"a","expect":[1,"("]}`, "expect[1]: error parsing regexp"},
		{"forbidden expression", `{"id":"a","expect":[1],"forbid":["["]}`, "forbid[0]: error parsing regexp"},
		{"choice", `{"id":"a","expect":[{"a":{"$in":1}}]}`, "expect[0]: a: $in: want an array"},
		{"length", `{"id":"a","expect":[{"a":[{"$len":-1}]}]}`, "expect[0]: a: [0]: $len: want a count"},
		{"close code", `{"id":"a","expect_close":[1000,99]}`, "expect_close: want close codes"},
		{"no close code", `{"id":"a","expect_close":[]}`, "expect_close: an empty list"},
		{"alternative", `{"id":"a","expect":[1],"alt":[{"expect":[1],"wy":""}]}`, "alt[0]: wy: unknown member"},
		{"item", `{"id":"a","expect":[1],"send":["x",{"wait":0}]}`, "send[1]: wait: want a whole number from 1"},
		{"item of another kind", `{"id":"a","expect":[1],"send":[1]}`, "send[0]: want a string or an object"},
		{"item without meaning", `{"id":"a","expect":[1],"send":[{}]}`, "send[0]: item: says neither"},
		{"item with too much", `{"id":"a","expect":[1],"send":[{"ping":"","binary":true}]}`, "send[0]: binary: unknown member"},
		{"capture without method", `{"id":"a","expect":[1],"send":[{"capture":"R"}]}`, "send[0]: capture: want a name"},
		{"base64", `{"id":"a","expect":[1],"send":[{"b64":"?"}]}`, "send[0]: b64: illegal base64"},
		{"reserved bit", `{"id":"a","expect":[1],"send":[{"rsv":4,"text":""}]}`, "send[0]: rsv: want a whole number from 1 to 3"},
		{"interleaved", `{"id":"a","expect":[1],"send":[{"interleave_data_frame":["a"]}]}`, "send[0]: interleave_data_frame: want two"},
		{"requires", `{"id":"a","expect":[1],"requires":[1]}`, "requires[0]: want a string"},
	}
	const ok = `{"id":"ok","send":[],"expect_none":true}` + "\n\n"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := wire.Parse(strings.NewReader(ok + tt.line))
			if err == nil || !strings.HasPrefix(err.Error(), "wire: line 3: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse(%s) = %v, want an error at line 3 with %q", tt.line, err, tt.want)
			}
		})
	}
}

// The reader of JSON judges servers, so it is judged itself by what RFC 8259
// says of the whole text. A pattern in a case is read by it.
func TestStrictJSON(t *testing.T) {
	bad := []string{`01`, `1.`, `.1`, `+1`, `-`, `1e`, `1e+`, `"\x"`, `"\u12g4"`, `"\u12"`, "\"\x01\"", `[1,]`, `[,1]`, `{"a":1,}`,
		`{"a"}`, `{a:1}`, `nul`, `True`, `NaN`, `[1 2]`, `{"a":1 "b":2}`, `[1}`, `"`, ``, "\"\xff\"", `{"a":{"b":1,"\u0062":2}}`, "\u00a01"}
	for _, s := range bad {
		if _, err := wire.Parse(strings.NewReader(`{"id":"a","expect":[{"x":` + s + `}]}`)); err == nil {
			t.Errorf("Parse(expect x = %q) = nil, want an error", s)
		}
	}
	good := []string{`0`, `-0`, `-1.5e+10`, `1E400`, `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800"`, `[]`, `{}`, `[ ]`, "{\t}", `[[{"a":[null,true,false]}]]`, `{"":1}`}
	for _, s := range good {
		if _, err := wire.Parse(strings.NewReader(`{"id":"a","expect":[{"x":` + s + `}]}`)); err != nil {
			t.Errorf("Parse(expect x = %s) = %v, want nil", s, err)
		}
	}
}

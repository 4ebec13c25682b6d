package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/duetrpc/duet/codec"
)

// members writes what an Object finds as name=value, in order.
func members(text string) string {
	var b strings.Builder
	for o := codec.ObjectOf([]byte(text)); o.Next(); {
		b.WriteString(string(o.Name) + "=" + string(o.Value) + ";")
	}
	return b.String()
}

func TestObject(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for text, want := range map[string]string{
		``:                                       "",
		`null`:                                   "",
		`[1,2]`:                                  "",
		`{}`:                                     "",
		` { } `:                                  "",
		`{"a":1}`:                                "a=1;",
		" {\n \"a\" : 1.0 , \"b\"\t:\r[ {} ] } ": "a=1.0;b=[ {} ];",
		`{"a":{"b":1},"a":"x"}`:                  `a={"b":1};a="x";`,
		`{"\u0061\n":null}`:                      "a\n=null;",
		`{"":true}`:                              "=true;",
		`{"a":` + deep + `}`:                     "a=" + deep + ";",
		`{"a":1,"b":}`:                           "a=1;", // no JSON from there on
		`{"a":1,`:                                "a=1;",
		`{"a"`:                                   "",
		`{"a":1 "b":2}`:                          "a=1;",
		`{,"a":1}`:                               "",
	} {
		if got := members(text); got != want {
			t.Errorf("members of %.60s = %.60s, want %.60s", text, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, row := range []struct{ text, name, want string }{
		{`{"a":1,"b":{"a":2}}`, "a", "1"},
		{`{"\u0061":"x"}`, "a", `"x"`},
		{`{"A":1}`, "a", ""},
		{`{"a":1,"a":1}`, "a", ""},
		{`{"a":null}`, "a", "null"},
		{`[{"a":1}]`, "a", ""},
		{``, "a", ""},
	} {
		if got := codec.Find([]byte(row.text), row.name); string(got) != row.want || (got == nil) != (row.want == "") {
			t.Errorf("Find(%s, %q) = %q, want %q", row.text, row.name, got, row.want)
		}
	}
}

func TestAppendObject(t *testing.T) {
	one := []codec.Member{{"m", []byte("7")}}
	for _, row := range []struct {
		object  string
		members []codec.Member
		want    string
	}{
		{"", nil, `{}`},
		{"", one, `{"m":7}`},
		{"{}", one, `{"m":7}`},
		{`{ "a" : 1.0 }`, one, `{"a" : 1.0,"m":7}`},
		{`{"m":{"deep":[]},"a":1,"m":2}`, one, `{"a":1,"m":7}`},
		{`{"\u006d":2}`, one, `{"m":7}`},
		{`{"a":1}`, []codec.Member{{"x\n", []byte(`"\n"`)}, {"y", []byte(`{}`)}}, `{"a":1,"x\n":"\n","y":{}}`},
	} {
		got := codec.AppendObject([]byte("^"), []byte(row.object), row.members)
		if string(got) != "^"+row.want || !json.Valid(got[1:]) {
			t.Errorf("AppendObject(%s) = %s, want %s", row.object, got, row.want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for literal, want := range map[string]string{
		`"a"`: "a", `""`: "", `"\u00e9\n"`: "é\n", `"\ud800"`: "\uFFFD",
	} {
		if got, ok := codec.Unquote([]byte(literal)); got != want || !ok {
			t.Errorf("Unquote(%s) = %q, %t, want %q", literal, got, ok, want)
		}
	}
	for _, literal := range []string{``, `1`, `a`, `"a`, `"a" `, `"`, `"\x"`, `null`} {
		if got, ok := codec.Unquote([]byte(literal)); ok {
			t.Errorf("Unquote(%s) = %q, want none", literal, got)
		}
	}
}

// What is not read to its end, or not JSON, never makes more of a text than it has.
func FuzzObject(f *testing.F) {
	for _, text := range []string{`{"a":1,"b":[{}]}`, `{"a":1`, `{"a" 1}`, `[`, `{"\ud800":"\u0000"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		valid := codec.Check([]byte(text), &codec.Rules{Depth: 1 << 20}) == nil
		count := 0
		for o := codec.ObjectOf([]byte(text)); o.Next(); count++ {
			if codec.Check(o.Value, &codec.Rules{Depth: 1 << 20}) != nil && valid {
				t.Fatalf("value %q of %q is not JSON", o.Value, text)
			}
		}
		var all map[string]json.RawMessage
		if !valid || json.Unmarshal([]byte(text), &all) != nil {
			return
		}
		if count < len(all) {
			t.Fatalf("%d members found in %q, encoding/json has %d", count, text, len(all))
		}
		again := codec.AppendObject(nil, []byte(text), nil)
		if len(all) > 0 && members(string(again)) != members(text) {
			t.Fatalf("AppendObject(%q) = %q has other members", text, again)
		}
		for name := range all {
			with := codec.AppendObject(nil, []byte(text), []codec.Member{{Name: name, Value: []byte("7")}})
			if !strings.Contains(name, "\uFFFD") && string(codec.Find(with, name)) != "7" {
				t.Fatalf("AppendObject(%q) with %q = %q", text, name, with)
			}
		}
	})
}

func TestKeyOf(t *testing.T) {
	for literal, id := range map[string]codec.ID{
		`7`: codec.NumberID(7), `7.0`: codec.NumberID(7), `"7"`: codec.StringID("7"), `"\u0061"`: codec.StringID("a"),
	} {
		if key, ok := codec.KeyOf([]byte(literal)); !ok || key != id.Key() {
			t.Errorf("KeyOf(%s) = %v, %t, want the key of %v", literal, key, ok, id)
		}
	}
	for _, literal := range []string{``, `null`, `true`, `{}`, `[1]`, `"` + strings.Repeat("a", 256) + `"`} {
		if key, ok := codec.KeyOf([]byte(literal)); ok {
			t.Errorf("KeyOf(%.20s) = %v, want none", literal, key)
		}
	}
	literal := []byte(`123456`)
	if n := testing.AllocsPerRun(100, func() { codec.KeyOf(literal) }); n != 0 {
		t.Errorf("KeyOf an integer allocates %v times", n)
	}
}

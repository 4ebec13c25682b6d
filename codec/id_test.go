package codec_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/duetrpc/duet/codec"
)

// parse makes an id that the test knows to be one.
func parse(t *testing.T, literal string) codec.ID {
	t.Helper()
	id, err := codec.ParseID([]byte(literal))
	if err != nil {
		t.Fatalf("ParseID(%s) = %v", literal, err)
	}
	return id
}

// Ids in one row are the same, ids of different rows are not.
func TestKey(t *testing.T) {
	rows := [][]string{
		{`null`},
		{`0`, `-0`, `0.0`, `-0.0`, `0e999`, `0E-999`, `0e99999999999999999999`, `0.000e+5`},
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`, `1.000`, `1E+0`, `1e-0`, `0.0001e4`, `10000e-4`},
		{`-1`, `-1.0`, `-10e-1`},
		{`100`, `1e2`, `1.00e2`, `1E+2`, `1e02`, `10e1`},
		{`9007199254740992`, `9007199254740992.0`},
		{`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
		{`1.2`, `1.20`, `12e-1`, `0.12e1`},
		{`1.9`},
		{`-1.9`},
		{`999999999999999999`},
		{`1000000000000000000`, `1e18`},
		{`9223372036854775807`, `9223372036854775807.000`},
		{`-9223372036854775808`, `-922337203685477580.8e1`},
		{`9223372036854775808`, `9223372036854775.808e3`},
		{`-9223372036854775809`},
		{`123456789012345678901234567890`, `12345678901234567890123456789e1`},
		{`123456789012345678901234567891`},
		{`1e400`, `10e399`, `0.1e401`},
		{`1e401`},
		{`-1e400`},
		{`1e-400`, `0.1e-399`},
		{`1e99999999999999999999`, `10e99999999999999999998`},
		{`1e99999999999999999998`},
		{`1e-99999999999999999999`},
		{`"1"`, `"\u0031"`},
		{`"1.0"`},
		{`"null"`},
		{`""`},
		{`"0"`},
		{`"a"`, `"\u0061"`},
		{`"A"`, `"\u0041"`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
		{`"e\u0301"`},
		{`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		{`"\ud800"`, `"\uD800"`},
		{`"\ud801"`},
		{`"\udc00"`},
		{`"\ufffd"`, "\"\uFFFD\""},
		{`"\ud800\ud800"`},
		{`"\udc00\ud800"`},
		{`"/"`, `"\/"`, `"\u002f"`},
		{`"\""`, `"\u0022"`},
		{`"\\"`, `"\u005c"`},
		{`"\b\f\n\r\t"`, `"\u0008\u000c\u000a\u000D\u0009"`},
		{`"\u0000"`},
		{`"\\u0061"`},
	}
	seen := map[codec.Key]int{{}: -1}
	for n, row := range rows {
		for _, literal := range row {
			key := parse(t, literal).Key()
			first, known := seen[key]
			if literal == row[0] {
				if known {
					t.Errorf("Key(%s) is that of row %d, want a new one", literal, first)
				}
				seen[key] = n
			} else if !known || first != n {
				t.Errorf("Key(%s) differs from Key(%s), want the same", literal, row[0])
			}
		}
	}
	if (codec.ID{}).Key() != (codec.Key{}) {
		t.Error("the key of the absent id is not the zero Key")
	}
}

func TestInt64(t *testing.T) {
	for _, row := range []struct {
		literal string
		want    int64
		ok      bool
	}{
		{`101`, 101, true},
		{`101.0`, 101, true},
		{`1.01e2`, 101, true},
		{`1010E-1`, 101, true},
		{`-5`, -5, true},
		{`-0`, 0, true},
		{`0e5`, 0, true},
		{`9223372036854775807`, math.MaxInt64, true},
		{`-9223372036854775808`, math.MinInt64, true},
		{`9e18`, 9e18, true},
		{`-1e18`, -1e18, true},
		{`9.223372036854775807e18`, math.MaxInt64, true},
		{`9223372036854775808`, 0, false},
		{`-9223372036854775809`, 0, false},
		{`1e19`, 0, false},
		{`1e99999999999999999999`, 0, false},
		{`1e-99999999999999999999`, 0, false},
		{`1.5`, 0, false},
		{`"101"`, 0, false},
		{`null`, 0, false},
	} {
		if n, ok := parse(t, row.literal).Int64(); n != row.want || ok != row.ok {
			t.Errorf("ParseID(%s).Int64() = %d, %t, want %d, %t", row.literal, n, ok, row.want, row.ok)
		}
	}
	if _, ok := (codec.ID{}).Int64(); ok {
		t.Error("the absent id has an Int64")
	}
}

func TestIDLiteral(t *testing.T) {
	for _, row := range []struct {
		name         string
		id           codec.ID
		text, append string
		zero, null   bool
	}{
		{"absent", codec.ID{}, "", "null", true, false},
		{"null", codec.NullID(), "null", "null", false, true},
		{"number", codec.NumberID(-42), "-42", "-42", false, false},
		{"least", codec.NumberID(math.MinInt64), "-9223372036854775808", "-9223372036854775808", false, false},
		{"string", codec.StringID("a\"\n"), `"a\"\n"`, `"a\"\n"`, false, false},
		{"empty string", codec.StringID(""), `""`, `""`, false, false},
		{"parsed number", parse(t, `1.50e+00`), `1.50e+00`, `1.50e+00`, false, false},
		{"parsed string", parse(t, `"\u0061\/"`), `"\u0061\/"`, `"\u0061\/"`, false, false},
		{"parsed null", parse(t, `null`), "null", "null", false, true},
	} {
		for _, id := range []codec.ID{row.id, row.id.Clone()} {
			if got := id.String(); got != row.text {
				t.Errorf("%s: String() = %s, want %s", row.name, got, row.text)
			}
			if got := string(id.AppendTo([]byte("x"))); got != "x"+row.append {
				t.Errorf("%s: AppendTo(x) = %s, want x%s", row.name, got, row.append)
			}
			if id.IsZero() != row.zero || id.IsNull() != row.null {
				t.Errorf("%s: IsZero, IsNull = %t, %t, want %t, %t", row.name, id.IsZero(), id.IsNull(), row.zero, row.null)
			}
			if id.Key() != row.id.Key() {
				t.Errorf("%s: the clone has another key", row.name)
			}
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	var syntax *codec.SyntaxError
	for _, literal := range []string{``, ` 1`, `1 `, `01`, `"a`, `"a"b`, `1,2`, `nul`, "\"\xff\"", `[[]]`} {
		if id, err := codec.ParseID([]byte(literal)); !errors.As(err, &syntax) || !id.IsZero() {
			t.Errorf("ParseID(%q) = %v, %v, want a SyntaxError", literal, id, err)
		}
	}
	for _, literal := range []string{`true`, `false`, `[]`, `{}`, `[1]`} {
		_, err := codec.ParseID([]byte(literal))
		if err == nil || err.Error() != "codec: id is not a string, a number or null" {
			t.Errorf("ParseID(%q) = %v, want a refusal of the type", literal, err)
		}
	}
	if _, err := codec.ParseID([]byte("\"\xff\"")); !errors.Is(err, codec.ErrUTF8) {
		t.Errorf("ParseID of broken UTF-8 = %v, want ErrUTF8", err)
	}
}

func TestIDLength(t *testing.T) {
	for _, literal := range []string{strings.Repeat("1", 256), `"` + strings.Repeat("a", 254) + `"`} {
		call := version(`{v,"method":"m","id":` + literal + `}`)
		if m := one(t, call, nil); m.Kind != codec.Call || m.ID.String() != literal {
			t.Errorf("an id of 256 bytes: %s, want a call", show(m))
		}
		if id := parse(t, literal); id.String() != literal {
			t.Errorf("ParseID of 256 bytes = %s, want %s", id, literal)
		}
		longer := strings.Replace(literal, literal[2:4], literal[2:4]+literal[2:3], 1)
		if _, err := codec.ParseID([]byte(longer)); err == nil || err.Error() != "codec: id is longer than 256 bytes" {
			t.Errorf("ParseID of 257 bytes = %v, want a refusal", err)
		}
		call = version(`{v,"method":"m","id":` + longer + `}`)
		if m := one(t, call, nil); m.Kind != codec.Invalid || m.Fault != codec.IDTooLong || !m.ID.IsNull() {
			t.Errorf("an id of 257 bytes: %s, want invalid with id null", show(m))
		}
		response := version(`{v,"result":1,"id":` + longer + `}`)
		if m := one(t, response, nil); m.Kind != codec.BadResponse || m.Fault != codec.IDTooLong || !m.ID.IsZero() {
			t.Errorf("a response with an id of 257 bytes: %s, want a bad response without one", show(m))
		}
	}
}

// A code as long as the message limit allows must not cost quadratic time.
func TestErrorCodeLength(t *testing.T) {
	code := "1e" + strings.Repeat("9", 4<<20)
	m := one(t, version(`{v,"id":1,"error":{"message":"","code":`+code+`}}`), nil)
	if m.Kind != codec.BadResponse || m.Fault != codec.ErrorCodeInvalid {
		t.Errorf("a code of 4 MiB: %s, want a bad response", m.Fault)
	}
}

// A decoded id is a view; a clone, a parsed id and a key are not.
func TestIDOwnership(t *testing.T) {
	text := []byte(version(`{v,"method":"m","id":"abc"}`))
	var e codec.Envelope
	if err := e.Decode(text, nil); err != nil {
		t.Fatal(err)
	}
	view, clone, key := e.Messages[0].ID, e.Messages[0].ID.Clone(), e.Messages[0].ID.Key()
	literal := []byte(`"abc"`)
	parsed, err := codec.ParseID(literal)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] = 'x'
	}
	literal[1] = 'x'
	if clone.String() != `"abc"` || parsed.String() != `"abc"` || key != parsed.Key() {
		t.Errorf("clone %s, parsed %s changed with the text", clone, parsed)
	}
	if view.String() != "xxxxx" {
		t.Errorf("the decoded id is %s, want a view of the text", view)
	}
}

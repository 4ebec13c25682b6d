package codec_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
)

// The names follow the custom of test suites for JSON: y is accepted, n is
// refused. Each row is checked as a value of its own and as params.
var grammar = []struct {
	name string
	ok   bool
	text string
}{
	{"y array empty", true, `[]`},
	{"y array empty with space", true, "[ \t\r\n]"},
	{"y array of one", true, `[1]`},
	{"y array of each kind", true, `[null,true,false,1,"a",[],{}]`},
	{"y array in arrays", true, `[[[]],[[]]]`},
	{"y array with space everywhere", true, ` [ 1 , [ 2 ] , { } ] `},
	{"y array of empty string", true, `[""]`},
	{"y array ends with newline", true, "[1]\n"},
	{"y object empty", true, `{}`},
	{"y object empty with space", true, "{ \n }"},
	{"y object of one", true, `{"a":1}`},
	{"y object with empty name", true, `{"":0}`},
	{"y object with space everywhere", true, ` { "a" : 1 , "b" : { "c" : [ ] } } `},
	{"y object with escaped name", true, `{"a\u0062\"":1}`},
	{"y object with duplicate names", true, `{"a":1,"a":2}`},
	{"y object with NUL in its name", true, `{"a\u0000":1}`},
	{"y object in array in object", true, `{"a":[{"b":[{}]}]}`},
	{"y object with long names", true, `{"abcdefghijklmnopqrstuvwxyz":1,"0123456789012345":2}`},
	{"y true", true, `true`},
	{"y false", true, `false`},
	{"y null", true, `null`},
	{"y scalar with space", true, " \t\n\r null \r\n\t "},
	{"y number zero", true, `0`},
	{"y number minus zero", true, `-0`},
	{"y number digits", true, `1234567890123456789012345678901234567890`},
	{"y number negative", true, `-17`},
	{"y number fraction", true, `0.5`},
	{"y number fraction of zeros", true, `1.000`},
	{"y number exponent", true, `1e5`},
	{"y number capital exponent", true, `1E5`},
	{"y number exponent with plus", true, `1e+5`},
	{"y number exponent with minus", true, `1E-5`},
	{"y number exponent with zeros", true, `1e005`},
	{"y number zero with exponent", true, `0e1`},
	{"y number all parts", true, `-12.34e-56`},
	{"y number beyond floats", true, `1e400`},
	{"y number below floats", true, `-1e-99999999999999999999`},
	{"y string empty", true, `""`},
	{"y string of one", true, `"a"`},
	{"y string of seven", true, `"abcdefg"`},
	{"y string of eight", true, `"abcdefgh"`},
	{"y string of nine", true, `"abcdefghi"`},
	{"y string of seventeen", true, `"abcdefghijklmnopq"`},
	{"y string all short escapes", true, `"\"\\\/\b\f\n\r\t"`},
	{"y string escapes across words", true, `"abc\"defghi\\jklmnopq\/rstuvwx\u0041yz"`},
	{"y string unicode escape", true, `"\u00e9\u00E9"`},
	{"y string NUL escape", true, `"\u0000"`},
	{"y string surrogate pair", true, `"\ud83d\ude00"`},
	{"y string high surrogate alone", true, `"\ud800"`},
	{"y string low surrogate alone", true, `"\udc00"`},
	{"y string surrogates inverted", true, `"\ude00\ud83d"`},
	{"y string high surrogate then escape", true, `"\ud800\n"`},
	{"y string noncharacter", true, "\"\uFFFF\""},
	{"y string replacement character", true, "\"\uFFFD\""},
	{"y string BOM inside", true, "\"\uFEFF\""},
	{"y string DEL", true, "\"\x7f\""},
	{"y string line separators", true, "\"\u2028\u2029\""},
	{"y string two bytes", true, `"é"`},
	{"y string three bytes", true, `"漢字かな交じり文"`},
	{"y string four bytes", true, `"😀😀😀"`},
	{"y string greatest code point", true, "\"\U0010FFFF\""},
	{"y string text of every width", true, `"aé漢😀aé漢😀aé漢😀"`},
	{"y string looks like JSON", true, `"[{\"a\":1},"`},
	{"y string of spaces", true, `"                    "`},
	{"y string quote is last of a word", true, `"1234567"`},

	{"n empty", false, ``},
	{"n only space", false, " \t\r\n"},
	{"n BOM", false, "\uFEFF{}"},
	{"n only BOM", false, "\uFEFF"},
	{"n NUL", false, "\x00"},
	{"n form feed as space", false, "\f1"},
	{"n no-break space", false, "\u00A01"},
	{"n vertical tab as space", false, "[\v1]"},
	{"n comment", false, `/*c*/1`},
	{"n comment at the end", false, `1//`},
	{"n hash comment", false, "1#x"},
	{"n two values", false, `1 2`},
	{"n two objects", false, `{}{}`},
	{"n two lines", false, "{}\n{}"},
	{"n trailing comma after value", false, `1,`},
	{"n trailing brace", false, `{}}`},
	{"n trailing bracket", false, `[]]`},
	{"n trailing text", false, `{}x`},
	{"n trailing NUL", false, "{}\x00"},
	{"n header line", false, "Content-Length: 2\r\n\r\n{}"},
	{"n True", false, `True`},
	{"n TRUE", false, `TRUE`},
	{"n tru", false, `tru`},
	{"n truth", false, `truth`},
	{"n truee", false, `truee`},
	{"n fals", false, `fals`},
	{"n nul", false, `nul`},
	{"n nulll", false, `nulll`},
	{"n undefined", false, `undefined`},
	{"n bare word", false, `abc`},
	{"n NaN", false, `NaN`},
	{"n nan", false, `nan`},
	{"n Infinity", false, `Infinity`},
	{"n minus Infinity", false, `-Infinity`},
	{"n number minus", false, `-`},
	{"n number minus in array", false, `[-]`},
	{"n number two minus", false, `--1`},
	{"n number plus", false, `+1`},
	{"n number leading zero", false, `01`},
	{"n number two zeros", false, `00`},
	{"n number minus leading zero", false, `-01`},
	{"n number leading point", false, `.5`},
	{"n number minus point", false, `-.5`},
	{"n number trailing point", false, `1.`},
	{"n number trailing point in array", false, `[1.]`},
	{"n number point exponent", false, `1.e5`},
	{"n number two points", false, `1.2.3`},
	{"n number no exponent", false, `1e`},
	{"n number exponent sign only", false, `1e+`},
	{"n number exponent fraction", false, `1e1.5`},
	{"n number two exponents", false, `1e1e1`},
	{"n number hexadecimal", false, `0x10`},
	{"n number underscore", false, `1_000`},
	{"n number comma inside array", false, `[1,,2]`},
	{"n number letter after", false, `1a`},
	{"n number space inside", false, `1 000`},
	{"n number full width digit", false, `１`},
	{"n string not closed", false, `"abc`},
	{"n string not closed at eight", false, `"abcdefgh`},
	{"n string lone quote", false, `"`},
	{"n string single quotes", false, `'a'`},
	{"n string backslash at end", false, `"\`},
	{"n string escaped quote at end", false, `"\"`},
	{"n string escape x", false, `"\x41"`},
	{"n string escape a", false, `"\a"`},
	{"n string escape U", false, `"\U0041"`},
	{"n string escape apostrophe", false, `"\'"`},
	{"n string escape of a newline", false, "\"\\\n\""},
	{"n string escape NUL byte", false, "\"\\\x00\""},
	{"n string unicode escape cut at 0", false, `"\u"`},
	{"n string unicode escape cut at 1", false, `"\u0"`},
	{"n string unicode escape cut at 3", false, `"\u004"`},
	{"n string unicode escape cut by the end", false, `"\u004`},
	{"n string unicode escape g", false, `"\u00g0"`},
	{"n string unicode escape minus", false, `"\u-041"`},
	{"n string unicode escape at sign", false, `"\u00@0"`},
	{"n string unicode escape backquote", false, "\"\\u00`0\""},
	{"n string newline", false, "\"a\nb\""},
	{"n string tab", false, "\"a\tb\""},
	{"n string NUL byte", false, "\"a\x00b\""},
	{"n string unit separator", false, "\"a\x1fb\""},
	{"n string control after eight", false, "\"abcdefgh\x01\""},
	{"n string control in the last word", false, "\"abcdefghabc\x1f\"        "},
	{"n array not closed", false, `[`},
	{"n array not closed after value", false, `[1`},
	{"n array not closed after comma", false, `[1,`},
	{"n array closed by brace", false, `[1}`},
	{"n array trailing comma", false, `[1,]`},
	{"n array leading comma", false, `[,1]`},
	{"n array only comma", false, `[,]`},
	{"n array no comma", false, `[1 2]`},
	{"n array no comma between strings", false, `["a""b"]`},
	{"n array colon", false, `["a":1]`},
	{"n array semicolon", false, `[1;2]`},
	{"n array inner not closed", false, `[[1]`},
	{"n array star", false, `[*]`},
	{"n object not closed", false, `{`},
	{"n object not closed after name", false, `{"a"`},
	{"n object not closed after colon", false, `{"a":`},
	{"n object not closed after value", false, `{"a":1`},
	{"n object not closed after comma", false, `{"a":1,`},
	{"n object closed by bracket", false, `{"a":1]`},
	{"n object empty closed by bracket", false, `{]`},
	{"n object trailing comma", false, `{"a":1,}`},
	{"n object leading comma", false, `{,"a":1}`},
	{"n object two commas", false, `{"a":1,,"b":2}`},
	{"n object no comma", false, `{"a":1 "b":2}`},
	{"n object no colon", false, `{"a" 1}`},
	{"n object two colons", false, `{"a"::1}`},
	{"n object comma for colon", false, `{"a",1}`},
	{"n object equals for colon", false, `{"a"=1}`},
	{"n object no value", false, `{"a":}`},
	{"n object no name", false, `{:1}`},
	{"n object name without quotes", false, `{a:1}`},
	{"n object name with single quotes", false, `{'a':1}`},
	{"n object name is a number", false, `{1:1}`},
	{"n object name is null", false, `{null:1}`},
	{"n object name not closed", false, `{"a:1}`},
	{"n object name with control", false, "{\"a\n\":1}"},
	{"n object value only", false, `{1}`},

	{"n UTF-8 lone continuation", false, "\"\x80\""},
	{"n UTF-8 lead alone", false, "\"\xc3\""},
	{"n UTF-8 cut after two of three", false, "\"\xe6\xbc\""},
	{"n UTF-8 cut by the end", false, "\"\xe6\xbc"},
	{"n UTF-8 overlong slash", false, "\"\xc0\xaf\""},
	{"n UTF-8 overlong of three", false, "\"\xe0\x80\xaf\""},
	{"n UTF-8 surrogate", false, "\"\xed\xa0\x80\""},
	{"n UTF-8 above the greatest", false, "\"\xf4\x90\x80\x80\""},
	{"n UTF-8 five bytes", false, "\"\xf8\x88\x80\x80\x80\""},
	{"n UTF-8 FE FF", false, "\"\xff\xfe\""},
	{"n UTF-8 Latin-1 after ASCII", false, "\"abcdefghijklmn\xe9opqrstuvwxyz\""},
	{"n UTF-8 in a name", false, "{\"\xe9\":1}"},
	{"n UTF-8 outside a string", false, "[\xe9]"},
	{"n UTF-8 after an escape", false, "\"\\n\xff\""},
	{"n UTF-8 escaped", false, "\"\\\xff\""},
	{"n UTF-16", false, "[\x00\"\x00\xe9\x00\"\x00]\x00"},
}

func TestGrammar(t *testing.T) {
	for _, row := range grammar {
		t.Run(row.name, func(t *testing.T) {
			text := []byte(row.text)
			if valid := json.Valid(text) && utf8.Valid(text); valid != row.ok {
				t.Fatalf("the row itself is wrong: other parsers say %t", valid)
			}
			err := codec.Check(text, nil)
			if (err == nil) != row.ok {
				t.Errorf("Check(%q) = %v, want accepted %t", row.text, err, row.ok)
			}
			if got := errors.Is(err, codec.ErrUTF8); got != !utf8.Valid(text) {
				t.Errorf("Check(%q) = %v, is ErrUTF8 %t, want %t", row.text, err, got, !got)
			}
			var e codec.Envelope
			if err := e.Decode(text, nil); (err == nil) != row.ok {
				t.Errorf("Decode(%q) = %v, want accepted %t", row.text, err, row.ok)
			}
			if strings.Contains(row.name, "two values") || strings.TrimSpace(row.text) == "" {
				return // these mean something else inside an object
			}
			call := `{"jsonrpc":"2.0","id":1,"method":"m","x":` + row.text + `,"params":[` + row.text + `]}`
			if want := json.Valid([]byte(call)) && utf8.ValidString(call); want != (e.Decode([]byte(call), nil) == nil) {
				t.Errorf("Decode(%q) = accepted %t, want %t", call, !want, want)
			}
		})
	}
}

// Every string of the grammar is tried at each offset within a word of eight
// bytes, with short and long tails, since strings are read a word at a time.
func TestGrammarAlignment(t *testing.T) {
	for _, row := range grammar {
		for pad := range 17 {
			for _, tail := range []string{"", "]", `,"abcdefghijklm"]`, `,"é"]`} {
				text := []byte(`["` + strings.Repeat("p", pad) + `",` + row.text + tail)
				want := json.Valid(text) && utf8.Valid(text)
				if err := codec.Check(text, nil); (err == nil) != want {
					t.Errorf("Check(%q) = %v, want accepted %t", text, err, want)
				}
			}
		}
	}
}

// Behind the first byte that needs a decision a string is read in blocks of 64
// bytes: pieces at each place of one, whole, cut by its end, and broken.
func TestGrammarBlocks(t *testing.T) {
	pieces := []string{"", "#", "]", `\`, `\n`, `\"`, `\\`, `\\\"#`, `\u0041`, `\u00`, `\u00g1`, `\x`, `"`, `","`,
		"\x1f", "\x7f", "é", "漢", "😀", "\xc3", "\xe6\xbc", "\xf0\x9f\x98", "\x80", "é漢😀é", "\xc0\x80", "é\x01"}
	for _, first := range []string{`\n`, "é"} {
		for before := range 70 {
			for _, after := range []int{0, 1, 2, 7, 15, 16, 60, 64, 70} {
				for _, piece := range pieces {
					cut := `["` + first + strings.Repeat("a", before) + piece + strings.Repeat("a", after)
					for _, text := range [][]byte{[]byte(cut), []byte(cut + `"]`)} {
						want := json.Valid(text) && utf8.Valid(text)
						if err := codec.Check(text, nil); (err == nil) != want {
							t.Fatalf("Check(%q) = %v, want accepted %t", text, err, want)
						}
					}
				}
			}
		}
	}
}

func TestEveryByteInAString(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			text := []byte(`"aaaaaaaaaaaaaaaaaaaa"`)
			text[1+at] = byte(c)
			want := json.Valid(text) && utf8.Valid(text)
			if err := codec.Check(text, nil); (err == nil) != want {
				t.Fatalf("Check(%q) = %v, want accepted %t", text, err, want)
			}
		}
	}
}

func TestSyntaxErrorOffset(t *testing.T) {
	for _, row := range []struct {
		name, text string
		offset     int
		reason     string
	}{
		{"empty", ``, 0, "unexpected end of text, want a value"},
		{"only space", `   `, 3, "unexpected end of text, want a value"},
		{"BOM", "\uFEFF{}", 0, "unexpected character, want a value"},
		{"trailing text", `{} x`, 3, "text after the value"},
		{"second object", `{"a":1}{"b":2}`, 7, "text after the value"},
		{"NaN", `{"a":NaN}`, 5, "unexpected character, want a value"},
		{"leading zero", `{"a":012}`, 6, "digit after a leading zero"},
		{"control character", "{\"a\":\"b\n\"}", 7, "control character in a string"},
		{"escape", `["\q"]`, 3, "unexpected character, want an escape"},
		{"hexadecimal", `["\u00x0"]`, 6, "unexpected character, want a hexadecimal digit"},
		{"not closed", `{"a":"b`, 7, "string is not closed"},
		{"cut object", `{"a":1`, 6, "unexpected end of text, want comma or }"},
		{"cut array", `[1`, 2, "unexpected end of text, want comma or ]"},
		{"no colon", `{"a" 1}`, 5, "unexpected character, want colon"},
		{"no name", `{"a":1,}`, 7, "unexpected character, want a member name"},
		{"no digit", `[1.]`, 3, "unexpected character, want a digit"},
		{"UTF-8", "[\"ok\",\"a\xff\"]", 8, "invalid UTF-8"},
		{"UTF-8 after broken JSON", "{]\xff", 2, "invalid UTF-8"},
		{"too deep", strings.Repeat("[", 1001), 1000, "nesting too deep"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var e codec.Envelope
			var syntax *codec.SyntaxError
			err := e.Decode([]byte(row.text), nil)
			if !errors.As(err, &syntax) || syntax.Offset != row.offset || syntax.Reason != row.reason {
				t.Fatalf("Decode(%q) = %v, want %q at byte %d", row.text, err, row.reason, row.offset)
			}
			if e.Batch || e.Fault != codec.NoFault || len(e.Messages) != 0 {
				t.Errorf("Decode(%q) left %+v, want an empty envelope", row.text, e)
			}
		})
	}
}

func TestSyntaxErrorText(t *testing.T) {
	err := codec.Check([]byte(`[1,]`), nil)
	if got, want := err.Error(), "codec: unexpected character, want a value at byte 3"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestDepth(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	mixed := func(n int) string {
		return strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2)
	}
	for _, row := range []struct {
		name  string
		text  string
		depth int
		ok    bool
	}{
		{"default reached", nest(1000), 0, true},
		{"default passed", nest(1001), 0, false},
		{"negative is default", nest(1001), -1, false},
		{"one", `[1]`, 1, true},
		{"two in one", `[[]]`, 1, false},
		{"object in one", `[{}]`, 1, false},
		{"scalar in one", `1`, 1, true},
		{"a word of bits", nest(64), 64, true},
		{"a word of bits and one", nest(65), 64, false},
		{"mixed over a word", mixed(66), 66, true},
		{"mixed over two words", mixed(130), 130, true},
		{"mixed over two words passed", mixed(130), 129, false},
		{"siblings do not add up", "[" + strings.Repeat(nest(9)+",", 1000) + "1]", 10, true},
		{"a message counts", `{"jsonrpc":"2.0","method":"m","params":[[]]}`, 3, true},
		{"a message passes", `{"jsonrpc":"2.0","method":"m","params":[[]]}`, 2, false},
		{"an error object counts", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":[]}}`, 3, true},
		{"an error object passes", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":[]}}`, 2, false},
		{"an error object alone passes", `{"error":{}}`, 1, false},
		{"a batch counts", `[{"jsonrpc":"2.0","method":"m","params":[]}]`, 3, true},
		{"a batch passes", `[{"jsonrpc":"2.0","method":"m","params":[]}]`, 2, false},
		{"raised", nest(50000), 50000, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var e codec.Envelope
			rules := &codec.Rules{Depth: row.depth}
			if err := e.Decode([]byte(row.text), rules); (err == nil) != row.ok {
				t.Errorf("Decode = %v, want accepted %t", err, row.ok)
			}
			if err := codec.Check([]byte(row.text), rules); (err == nil) != row.ok {
				t.Errorf("Check = %v, want accepted %t", err, row.ok)
			}
		})
	}
}

// Containers deeper than one word of bits have to close with their own kind.
func TestDepthKinds(t *testing.T) {
	for n := 1; n < 200; n++ {
		open := strings.Repeat(`{"a":[`, n)
		shut := []byte(strings.Repeat(`]}`, n))
		if err := codec.Check([]byte(open+string(shut)), nil); err != nil {
			t.Fatalf("%d pairs: Check = %v, want accepted", n, err)
		}
		for i := range shut {
			swapped := []byte(string(shut))
			swapped[i] ^= ']' ^ '}'
			if codec.Check([]byte(open+string(swapped)), nil) == nil {
				t.Fatalf("%d pairs, closer %d of the wrong kind: accepted", n, i)
			}
		}
	}
}

// Eight megabytes of brackets cost no stack and end at the limit.
func TestBracketFlood(t *testing.T) {
	var e codec.Envelope
	for _, text := range []string{strings.Repeat("[", 8<<20), strings.Repeat(`{"a":`, 2<<20)} {
		if err := e.Decode([]byte(text), nil); err == nil {
			t.Errorf("Decode(%.8q...) accepted", text)
		}
	}
}

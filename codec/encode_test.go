package codec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
)

func TestAppend(t *testing.T) {
	e := &codec.Error{Code: 1234, Message: "boom \"x\"", Data: json.RawMessage(`{ "k":1.0 }`)}
	id := codec.StringID("a")
	for _, row := range []struct {
		name string
		got  []byte
		want string
		show string
	}{
		{"call", codec.AppendCall(nil, nil, 7, "m", []byte(`[1]`)), `{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}`, `call id=7 method=m params=[1]`},
		{"call without params", codec.AppendCall(nil, nil, -7, "a\nb", nil), `{"jsonrpc":"2.0","id":-7,"method":"a\nb"}`, "call id=-7 method=a\nb"},
		{"notification", codec.AppendNotification(nil, nil, "m", []byte(`{}`)), `{"jsonrpc":"2.0","method":"m","params":{}}`, `notification method=m params={}`},
		{"notification without params", codec.AppendNotification(nil, nil, "m", nil), `{"jsonrpc":"2.0","method":"m"}`, `notification method=m`},
		{"result", codec.AppendResult(nil, nil, id, []byte(`[1]`)), `{"jsonrpc":"2.0","id":"a","result":[1]}`, `response id="a" result=[1]`},
		{"no result is null", codec.AppendResult(nil, nil, id, nil), `{"jsonrpc":"2.0","id":"a","result":null}`, `response id="a" result=null`},
		{"result for an absent id", codec.AppendResult(nil, nil, codec.ID{}, nil), `{"jsonrpc":"2.0","id":null,"result":null}`, `response id=null result=null`},
		{"error", codec.AppendError(nil, nil, codec.NumberID(1), e), `{"jsonrpc":"2.0","id":1,"error":{"code":1234,"message":"boom \"x\"","data":{ "k":1.0 }}}`, `response id=1 jsonrpc error 1234: boom "x" data={ "k":1.0 }`},
		{"error without data", codec.AppendError(nil, nil, codec.NullID(), &codec.Error{Code: codec.ParseError, Message: "p"}), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"p"}}`, `response id=null jsonrpc error -32700: p`},
		{"error for an absent id", codec.AppendError(nil, nil, codec.ID{}, &codec.Error{}), `{"jsonrpc":"2.0","id":null,"error":{"code":0,"message":""}}`, `response id=null jsonrpc error 0: `},
		{"nil error", codec.AppendError(nil, nil, id, nil), `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"Internal error"}}`, `response id="a" jsonrpc error -32603: Internal error`},
		{"opened call", codec.Close(append(codec.OpenCall(nil, nil, 7, "m"), "[2]"...)), `{"jsonrpc":"2.0","id":7,"method":"m","params":[2]}`, `call id=7 method=m params=[2]`},
		{"opened notification", codec.Close(append(codec.OpenNotification(nil, nil, "m"), "[2]"...)), `{"jsonrpc":"2.0","method":"m","params":[2]}`, `notification method=m params=[2]`},
		{"opened result", codec.Close(append(codec.OpenResult(nil, nil, id), "2"...)), `{"jsonrpc":"2.0","id":"a","result":2}`, `response id="a" result=2`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if string(row.got) != row.want {
				t.Errorf("wrote %s, want %s", row.got, row.want)
			}
			if got := show(one(t, row.want, nil)); got != row.show {
				t.Errorf("Decode(%s) = %s, want %s", row.want, got, row.show)
			}
		})
	}
}

// What is already in dst stays, and its room is used.
func TestAppendKeepsPrefix(t *testing.T) {
	dst := append(make([]byte, 0, 256), "xyz"...)
	for name, got := range map[string][]byte{
		"AppendCall":         codec.AppendCall(dst, nil, 1, "m", nil),
		"AppendNotification": codec.AppendNotification(dst, nil, "m", nil),
		"AppendResult":       codec.AppendResult(dst, nil, codec.NullID(), nil),
		"AppendError":        codec.AppendError(dst, nil, codec.NullID(), nil),
		"AppendString":       codec.AppendString(dst, "s"),
	} {
		if string(got[:3]) != "xyz" || &got[0] != &dst[0] {
			t.Errorf("%s did not append to dst", name)
		}
	}
}

// The literal of an id comes back byte for byte.
func TestIDEcho(t *testing.T) {
	for _, literal := range []string{`1`, `1.0`, `-0`, `1E+2`, `0.10`, `1e400`, `9007199254740993`, `""`, `"\u0061\/\n"`, `"é\u00e9"`, `"\ud800"`, `null`} {
		m := one(t, version(`{v,"method":"m","id": `+literal+` }`), nil)
		want := `{"jsonrpc":"2.0","id":` + literal + `,"result":1}`
		if got := string(codec.AppendResult(nil, nil, m.ID, []byte("1"))); got != want {
			t.Errorf("AppendResult = %s, want %s", got, want)
		}
	}
}

func TestAppendString(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"", `""`},
		{"plain /<>&' text", `"plain /<>&' text"`},
		{"\"\\", `"\"\\"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x1f\x7f", "\"\\u0000\\u0001\\u001f\x7f\""},
		{"é漢😀\u2028", "\"é漢😀\u2028\""},
		{"\uFFFD", "\"\uFFFD\""},
		{"a\xffb", "\"a\uFFFDb\""},
		{"\xff", "\"\uFFFD\""},
		{"\xe6\xbc", "\"\uFFFD\uFFFD\""},
		{"\xed\xa0\x80", "\"\uFFFD\uFFFD\uFFFD\""},
		{"a\nb\"c", `"a\nb\"c"`},
	} {
		got := codec.AppendString(nil, row.in)
		if string(got) != row.want {
			t.Errorf("AppendString(%q) = %s, want %s", row.in, got, row.want)
		}
	}
	for r := rune(0); r < 0x3000; r++ {
		got := codec.AppendString(nil, "x"+string(r)+"y")
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != "x"+string(r)+"y" || !utf8.Valid(got) {
			t.Fatalf("AppendString(%q) = %s, which reads as %q, %v", r, got, back, err)
		}
	}
}

func TestError(t *testing.T) {
	e := &codec.Error{Code: 1234, Message: "boom", Data: json.RawMessage(`"secret"`)}
	if got, want := e.Error(), "jsonrpc error 1234: boom"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	wrapped := fmt.Errorf("while calling: %w", e)
	if !errors.Is(wrapped, &codec.Error{Code: 1234, Message: "other"}) {
		t.Error("errors.Is with the same code = false")
	}
	if errors.Is(wrapped, &codec.Error{Code: 1235, Message: "boom"}) {
		t.Error("errors.Is with another code = true")
	}
	if errors.Is(e, (*codec.Error)(nil)) || errors.Is(e, errors.New("jsonrpc error 1234: boom")) {
		t.Error("errors.Is with no *Error = true")
	}
}

func TestCodeString(t *testing.T) {
	for code, want := range map[codec.Code]string{
		codec.ParseError:     "Parse error",
		codec.InvalidRequest: "Invalid Request",
		codec.MethodNotFound: "Method not found",
		codec.InvalidParams:  "Invalid params",
		codec.InternalError:  "Internal error",
		0:                    "0",
		-32000:               "-32000",
		1234:                 "1234",
	} {
		if got := code.String(); got != want {
			t.Errorf("Code(%d).String() = %q, want %q", int64(code), got, want)
		}
	}
}

// An Error owns its bytes: the text may be reused while it is kept.
func TestErrorOwnership(t *testing.T) {
	text := []byte(version(`{v,"id":1,"error":{"code":5,"message":"abc","data":[ 1.0 ]}}`))
	var e codec.Envelope
	if err := e.Decode(text, nil); err != nil {
		t.Fatal(err)
	}
	kept := e.Messages[0].Error
	for i := range text {
		text[i] = 'x'
	}
	if kept.Message != "abc" || string(kept.Data) != "[ 1.0 ]" {
		t.Errorf("the error became %v %s with the text", kept, kept.Data)
	}
}

//go:build !race

package codec_test

import (
	"strings"
	"testing"

	"github.com/duetrpc/duet/codec"
)

// The race detector allocates on its own, so these ceilings stand apart.
func TestAllocs(t *testing.T) {
	var e codec.Envelope
	for _, row := range []struct {
		name, text string
		rules      *codec.Rules
		ceiling    float64
	}{
		{"call", typicalCall, nil, 0},
		{"call with a string id", `{v,"method":"m","id":"abc-1","params":[1,2,{"a":"é"}]}`, nil, 0},
		{"call with extra members", `{v,"method":"m","id":1,"a":1,"b":2,"c":3}`, nil, 0},
		{"call, deep", `{v,"method":"m","id":1,"params":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, nil, 0},
		{"call under rules", `{v,"method":"m","id":1,"params":{"a":{"b":1,"c":2}}}`, &codec.Rules{IntegerID: true, IDBits: 32, ObjectParams: true, NoDuplicates: true}, 0},
		{"notification", `{v,"method":"m","params":{"a":1}}`, nil, 0},
		{"success", `{v,"id":1,"result":{"a":1}}`, nil, 0},
		{"null id", `{v,"id":null,"method":"m"}`, nil, 0},
		{"invalid", `{v,"id":1,"method":"m","params":1}`, nil, 0},
		{"not an object", `1`, nil, 0},
		{"batch", `[{v,"method":"m","id":1},{v,"method":"n"},{v,"id":1,"result":1},1]`, nil, 0},
		{"error", `{v,"id":1,"error":{"code":1,"message":"m","data":1}}`, nil, 3},
		{"escaped method", `{v,"method":"\u006d"}`, nil, 1},
	} {
		text := []byte(version(row.text))
		got := testing.AllocsPerRun(100, func() {
			if err := e.Decode(text, row.rules); err != nil {
				t.Fatal(err)
			}
		})
		if got > row.ceiling {
			t.Errorf("Decode of %s: %v allocations, want %v at most", row.name, got, row.ceiling)
		}
	}

	value := []byte(`{"a":[1,{"b":"c"}]}`)
	id := codec.NumberID(123456789)
	buf := make([]byte, 0, 1024)
	failure := &codec.Error{Code: 1, Message: "m"}
	for name, f := range map[string]func(){
		"Check":        func() { _ = codec.Check(value, nil) },
		"Key":          func() { _ = id.Key() },
		"Int64":        func() { _, _ = id.Int64() },
		"AppendCall":   func() { buf = codec.AppendCall(buf[:0], nil, 1, "method", value) },
		"AppendResult": func() { buf = codec.AppendResult(buf[:0], nil, id, value) },
		"AppendError":  func() { buf = codec.AppendError(buf[:0], nil, id, failure) },
	} {
		if got := testing.AllocsPerRun(100, f); got > 0 {
			t.Errorf("%s: %v allocations, want none", name, got)
		}
	}
}

package codec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/duetrpc/duet/codec"
)

// typicalCall is a request of the size most have: 90 bytes.
const typicalCall = `{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"fs.read","path":"a.go"}}`

// mixedParams returns about n bytes of objects with short strings and numbers,
// and every tenth with a long string, some of it not ASCII.
func mixedParams(n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"user-%d","score":%d.25,"active":true,"tags":["a","bc"],"note":null}`, i, i, i%97)
		if i%10 == 0 {
			fmt.Fprintf(&b, `,"%s\n%s"`, strings.Repeat("The quick brown fox jumps. ", 40), strings.Repeat("敏捷的棕色狐狸", 10))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// shapes are the texts of the benchmarks.
func shapes() []struct{ name, text string } {
	wrap := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"m","params":` + params + `}`
	}
	return []struct{ name, text string }{
		{"call90", typicalCall},
		{"mixed1MiB", wrap(mixedParams(1 << 20))},
		{"long1MiB", wrap(`["` + strings.Repeat("x", 1<<20) + `"]`)},
		{"cjk1MiB", wrap(`["` + strings.Repeat("快", 1<<20/3) + `"]`)},
		{"lines1MiB", wrap(`["` + strings.Repeat(`    return fmt.Errorf(\"%w\", err)\n`, 1<<20/36) + `"]`)},
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, shape := range shapes() {
		text := []byte(shape.text)
		b.Run(shape.name+"/codec", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			var e codec.Envelope
			for b.Loop() {
				if err := e.Decode(text, nil); err != nil || e.Messages[0].Kind != codec.Call {
					b.Fatal(err, e.Messages)
				}
			}
		})
		b.Run(shape.name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var m struct{ JSONRPC, ID, Method, Params json.RawMessage }
				if err := json.Unmarshal(text, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(shape.name+"/jsontext", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

func BenchmarkDecodeNoDuplicates(b *testing.B) {
	rules := &codec.Rules{NoDuplicates: true}
	text := []byte(shapes()[1].text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var e codec.Envelope
	for b.Loop() {
		if err := e.Decode(text, rules); err != nil || e.Messages[0].Kind != codec.Call {
			b.Fatal(err, e.Messages)
		}
	}
}

func BenchmarkAppendCall(b *testing.B) {
	var dst []byte
	params := []byte(`{"name":"fs.read","path":"a.go"}`)
	b.ReportAllocs()
	for b.Loop() {
		dst = codec.AppendCall(dst[:0], nil, 1234, "tools/call", params)
	}
}

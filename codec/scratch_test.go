package codec

import (
	"strconv"
	"strings"
	"testing"
)

// Between texts the scratch of an Envelope keeps neither a text nor the memory
// of an unusual one, also where a text was refused halfway. This cannot be seen
// from outside.
func TestScratchLetsGo(t *testing.T) {
	var many strings.Builder
	for i := range 5000 {
		many.WriteString(`"` + strconv.Itoa(i) + `":0,`)
	}
	var e Envelope
	for name, text := range map[string]string{
		"whole":      `{"x":1,"params":{"a":{"b":1}}}`,
		"cut":        `{"x":1,"y":2,"params":{"a":{"b":1`,
		"cut deep":   strings.Repeat(`{"a":[`, 200),
		"large":      `{` + many.String() + `"x":0}`,
		"large, cut": `{"params":{` + many.String(),
	} {
		for range 2 {
			_ = e.Decode([]byte(text), &Rules{NoDuplicates: true})
			s := &e.scan
			if s.text != nil || s.err != nil || len(s.names) != 0 || len(s.frames) != 0 || len(s.spill) != 0 {
				t.Errorf("%s: the scratch holds %d bytes, %v, %d names, %d frames, %d words", name, len(s.text), s.err, len(s.names), len(s.frames), len(s.spill))
			}
			if cap(s.names) > keepNames {
				t.Errorf("%s: the scratch has room for %d names, want %d at most", name, cap(s.names), keepNames)
			}
			for _, kept := range s.names[:cap(s.names)] {
				if kept != nil {
					t.Fatalf("%s: the scratch keeps the name %q", name, kept)
				}
			}
		}
	}
}

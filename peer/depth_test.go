package peer

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// A type that holds itself, and one that two of each next hold: a thousand types
// to look at.
type (
	itself struct{ Next *itself }
	pair1  struct{ A, B pair2 }
	pair2  struct{ A, B pair3 }
	pair3  struct{ A, B pair4 }
	pair4  struct{ A, B pair5 }
	pair5  struct{ A, B pair6 }
	pair6  struct{ A, B [1]pair7 }
	pair7  struct{ A, B int }
)

type writer struct{}

func (*writer) MarshalJSON() ([]byte, error) { return []byte("[[[]]]"), nil }

func TestDepthOf(t *testing.T) {
	type line struct {
		At   time.Time
		Text *string
		By   map[string][]int
	}
	for _, tc := range []struct {
		v    any
		want int // -1: not known
	}{
		{"", 0},
		{1.5, 0},
		{[]string{}, 1},
		{[]byte{}, 1},
		{&line{}, 3},
		{map[string][]line{}, 5},
		{struct{}{}, 1},
		{nil, -1},
		{[]any{}, -1},
		{map[any]int{}, -1},
		{map[writer]int{}, -1},
		{struct{ V any }{}, -1},
		{json.RawMessage{}, -1},
		{[]writer{}, -1},
		{struct{ W writer }{}, -1},
		{itself{}, -1},
		{pair1{}, -1},
		{pair6{}, 3},
	} {
		var d depths
		for range 2 { // found, and remembered
			got := d.of(reflect.TypeOf(tc.v))
			if got == unknownDepth {
				got = -1
			}
			if got != tc.want {
				t.Errorf("the depth of %T is %d, want %d", tc.v, got, tc.want)
			}
		}
	}
}

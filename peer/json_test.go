package peer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// counting is a Marshaler that counts how often it is asked.
type counting struct{ times *atomic.Int64 }

func (c counting) MarshalJSON() ([]byte, error) {
	c.times.Add(1)
	return []byte(`"counted"`), nil
}

// TestJSONNoUTF8: text that is not UTF-8 comes out as U+FFFD wherever it stands,
// behind what dst held before, and a Marshaler beside it comes out once.
func TestJSONNoUTF8(t *testing.T) {
	const bad = "a\xffb"
	much := strings.Repeat("x", 100_000) // more than an encoder holds back
	for _, c := range []struct {
		name  string
		value func(counting) any
		want  string
		most  int64 // how often the Marshaler may be asked
	}{
		{"nothing wrong", func(n counting) any { return []any{n, "ab"} }, `["counted","ab"]`, 1},
		{"string", func(n counting) any { return []any{n, bad} }, `["counted","a` + "\uFFFD" + `b"]`, 2},
		{"before it", func(n counting) any { return []any{bad, n} }, `["a` + "\uFFFD" + `b","counted"]`, 2},
		{"behind much", func(n counting) any { return []any{much, n, much, bad} }, `["` + much + `","counted","` + much + `","a` + "\uFFFD" + `b"]`, 2},
		{"name", func(counting) any { return map[string]int{bad: 1} }, `{"a` + "\uFFFD" + `b":1}`, 0},
		{"raw member", func(n counting) any { return []any{n, json.RawMessage(`{"x":"` + bad + `"}`)} },
			`["counted",{"x":"a` + "\uFFFD" + `b"}]`, 2},
		{"both", func(n counting) any { return []any{bad, json.RawMessage(`"` + bad + `"`), n} },
			`["a` + "\uFFFD" + `b","a` + "\uFFFD" + `b","counted"]`, 2},
	} {
		n := counting{new(atomic.Int64)}
		got, err := peer.JSONv2{}.Marshal([]byte("before"), c.value(n))
		if want := "before" + c.want; string(got) != want || err != nil {
			t.Errorf("%s: Marshal = %q, %v, want %q", c.name, got, err, want)
		}
		if times := n.times.Load(); times > c.most {
			t.Errorf("%s: a Marshaler was asked %d times, want at most %d", c.name, times, c.most)
		}
		raw, _ := peertest.Against(t, methods{"m": answers(c.value(n))}.options())
		raw.Send(call(7, "m"))
		raw.Want(result(7, c.want))
	}
	if _, err := (peer.JSONv2{}).Marshal(nil, []any{bad, func() {}}); err == nil {
		t.Error("Marshal of a func = nil, want an error")
	}
}

// TestStatsAlternate: each of several methods, called in turn and at random, is
// counted under its own name, unknown ones together.
func TestStatsAlternate(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 7))
	m := methods{"bad": func(context.Context, *peer.Request) (any, error) { return nil, &peer.Error{Code: 1, Message: "bad"} }}
	for i := range 3 {
		m[fmt.Sprint("m", i)] = answers(nil)
	}
	left, right := peertest.Pair(t, nil, m.options())
	names := []string{"m0", "m1", "m2", "bad", "unknown", "of another kind"}
	want := map[string]peer.MethodStats{}
	for i := range 600 {
		name := names[i%len(names)]
		if i > 200 {
			name = names[random.IntN(len(names))]
		}
		at := name
		if m[name] == nil {
			at = "_OTHER"
		}
		s := want[at]
		if s.Errors += 1; m[name] != nil && name != "bad" {
			s.Errors--
		}
		if random.IntN(3) == 0 {
			s.Notifications++
			if err := left.Notify(t.Context(), name, nil); err != nil {
				t.Fatal(err)
			}
		} else {
			s.Calls++
			_ = left.Call(t.Context(), name, nil, nil)
		}
		want[at] = s
	}
	_ = left.Call(t.Context(), "m0", nil, nil) // behind the last notification
	s := want["m0"]
	s.Calls++
	want["m0"] = s
	got := right.Stats().Methods
	if len(got) != len(want) {
		t.Errorf("Methods = %+v, want those of %d names", got, len(want))
	}
	for name, s := range want {
		if got[name] != s {
			t.Errorf("Methods[%q] = %+v, want %+v", name, got[name], s)
		}
	}
}

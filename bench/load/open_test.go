package load_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

// TestOpenStall stalls the system for 200 ms in the middle of a second. All calls
// that were to begin in that time must show what was left of it, and not only
// those that were on their way.
func TestOpenStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			warm  = 300 // calls: 300 ms, a thousand a second
			stall = 200 * time.Millisecond
		)
		start := time.Now()
		var until atomic.Int64 // from start
		pair := &fake{}
		pair.call = func(_ context.Context, in, out *load.Doc) error {
			if pair.calls.Load() == warm+501 {
				until.Store(int64(time.Since(start) + stall))
			}
			time.Sleep(max(0, time.Duration(until.Load())-time.Since(start)) + time.Millisecond)
			*out = *in
			return nil
		}
		l := load.Load{Kind: load.Typed, Size: 64, InFlight: 4096, Rate: 1000}
		r, err := load.Run(t.Context(), pair, nil, l, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if r.Calls != 1000 || r.Missed != 0 {
			t.Errorf("Run = %d calls, %d missed; want 1000, 0", r.Calls, r.Missed)
		}
		// A fifth of the calls met the stall: the longest waited for all of it, and
		// of the others each a millisecond less than the one before.
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"P50", r.P50, 1000},
			{"P99", r.P99, 191_000},
			{"P999", r.P999, 200_000},
			{"Max", r.Max, 201_000},
		} {
			if c.got < c.want-1 || c.got > c.want+1 {
				t.Errorf("Run.%s = %v µs, want %v", c.name, c.got, c.want)
			}
		}
	})
}

// TestOpenMissed has too few workers: what they could not take is counted and not
// hidden.
func TestOpenMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := &fake{call: func(_ context.Context, in, out *load.Doc) error {
			time.Sleep(9500 * time.Microsecond)
			*out = *in
			return nil
		}}
		l := load.Load{Kind: load.Typed, Size: 64, InFlight: 5, Rate: 1000}
		r, err := load.Run(t.Context(), pair, nil, l, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if r.Calls != 500 || r.Missed != 500 {
			t.Errorf("Run = %d calls, %d missed; want 500 each", r.Calls, r.Missed)
		}
	})
}

// TestOpenShare wants half of what a closed loop reaches: 256 calls of 10 ms at
// once are 25,600 a second.
func TestOpenShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := &fake{call: func(_ context.Context, in, out *load.Doc) error {
			time.Sleep(10 * time.Millisecond)
			*out = *in
			return nil
		}}
		l := load.Load{Kind: load.Typed, Size: 64, InFlight: 4096, Share: 0.5}
		r, err := load.Run(t.Context(), pair, nil, l, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if r.Load.Rate != 12_800 || r.Calls != 12_800 || r.Missed != 0 {
			t.Errorf("Run = %d calls at a rate of %v, %d missed; want 12800 at 12800, none missed", r.Calls, r.Load.Rate, r.Missed)
		}
	})
}

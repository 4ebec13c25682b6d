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
		if r.Calls != 1000 {
			t.Errorf("Run = %d calls, want 1000", r.Calls)
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

// TestOpenLine has too few workers, by half: the calls that are due meanwhile wait,
// and the time they wait is theirs. Five that take ten milliseconds each are 500 a
// second of the 1000 that are due, so the last one begins a second late.
func TestOpenLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		pair := &fake{call: func(_ context.Context, in, out *load.Doc) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(10 * time.Millisecond)
			*out = *in
			return nil
		}}
		l := load.Load{Kind: load.Typed, Size: 64, InFlight: 5, Rate: 1000}
		r, err := load.Run(t.Context(), pair, nil, l, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if r.Calls != 1000 || most.Load() != 5 {
			t.Errorf("Run = %d calls, %d at once; want 1000, 5", r.Calls, most.Load())
		}
		const last, step = 1_001_000, 10_000
		if r.Max < last-step || r.Max > last+step || r.P50 < last/2-step || r.P50 > last/2+step {
			t.Errorf("Run.P50 = %v µs, Max %v; want about %v and %v", r.P50, r.Max, last/2, last)
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
		if r.Load.Rate != 12_800 || r.Calls != 12_800 {
			t.Errorf("Run = %d calls at a rate of %v, want 12800 at 12800", r.Calls, r.Load.Rate)
		}
	})
}

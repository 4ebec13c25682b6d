package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

// TestClosed runs a closed loop on a clock of its own, where every call takes a
// millisecond: all figures are known.
func TestClosed(t *testing.T) {
	for _, kind := range []load.Kind{load.Typed, load.Raw} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int64
				takes := func() {
					n := now.Add(1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					time.Sleep(time.Millisecond)
					now.Add(-1)
				}
				pair := &fake{
					call: func(_ context.Context, in, out *load.Doc) error { takes(); *out = *in; return nil },
					raw:  func(in json.RawMessage) json.RawMessage { takes(); return slices.Clone(in) },
				}
				r, err := load.Run(t.Context(), pair, nil, load.Load{Kind: kind, Size: 64, InFlight: 16}, 100*time.Millisecond)
				if err != nil {
					t.Fatal(err)
				}
				if most.Load() != 16 {
					t.Errorf("Run had %d calls at once, want 16", most.Load())
				}
				if r.Calls != 1600 || r.Seconds != 0.1 || math.Abs(r.PerSecond-16000) > 1e-6 {
					t.Errorf("Run = %d calls in %v s, %v a second; want 1600, 0.1, 16000", r.Calls, r.Seconds, r.PerSecond)
				}
				if got := pair.calls.Load(); got != 3200 {
					t.Errorf("Run made %d calls, want 1600 and as many to warm up", got)
				}
				if r.P50 != 1000 || r.P99 != 1000 || r.P999 != 1000 || r.Max != 1000 {
					t.Errorf("Run = p50 %v, p99 %v, p99.9 %v, max %v; want 1000", r.P50, r.P99, r.P999, r.Max)
				}
			})
		})
	}
}

// TestCalls makes an exact number of calls, which no number of workers divides.
func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name            string
		calls, inFlight int
	}{
		{"more than workers", 1001, 16},
		{"fewer than workers", 5, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := load.Load{Kind: load.Typed, Size: 64, InFlight: c.inFlight, Calls: c.calls}
			r, err := load.Run(t.Context(), &fake{}, nil, l, time.Millisecond)
			if err != nil || r.Calls != c.calls {
				t.Errorf("Run = %d calls, %v; want %d", r.Calls, err, c.calls)
			}
		})
	}
}

// TestShort gives no time at all: every worker calls once nevertheless, so that
// there is always a result.
func TestShort(t *testing.T) {
	l := load.Load{Kind: load.Typed, Size: 64, InFlight: 16}
	r, err := load.Run(t.Context(), &fake{}, nil, l, time.Nanosecond)
	if err != nil || r.Calls != 16 {
		t.Errorf("Run = %d calls, %v; want 16", r.Calls, err)
	}
}

// TestSeqs shows that every call differs from the one before, and has its size.
func TestSeqs(t *testing.T) {
	var last int64
	pair := &fake{raw: func(in json.RawMessage) json.RawMessage {
		var doc load.Doc
		if err := json.Unmarshal(in, &doc); err != nil {
			t.Errorf("params %q: %v", in, err)
		}
		if doc.Seq == last || len(in) != 300 {
			t.Errorf("params have seq %d after %d and %d bytes, want another seq and 300", doc.Seq, last, len(in))
		}
		last = doc.Seq
		return in
	}}
	l := load.Load{Kind: load.Raw, Size: 300, InFlight: 1, Calls: 500}
	if _, err := load.Run(t.Context(), pair, nil, l, time.Millisecond); err != nil {
		t.Fatal(err)
	}
}

// TestWrongEcho shows that no wrong answer is counted as one.
func TestWrongEcho(t *testing.T) {
	typed := func(spoil func(out *load.Doc)) *fake {
		return &fake{call: func(_ context.Context, in, out *load.Doc) error {
			*out = *in
			spoil(out)
			return nil
		}}
	}
	raw := func(spoil func(out json.RawMessage) json.RawMessage) *fake {
		return &fake{raw: func(in json.RawMessage) json.RawMessage { return spoil(slices.Clone(in)) }}
	}
	for _, c := range []struct {
		name string
		kind load.Kind
		pair *fake
	}{
		{"another call's answer", load.Typed, typed(func(out *load.Doc) { out.Seq++ })},
		{"nothing", load.Typed, typed(func(out *load.Doc) { *out = load.Doc{} })},
		{"less text", load.Typed, typed(func(out *load.Doc) { out.Text = out.Text[1:] })},
		{"fewer lines", load.Typed, typed(func(out *load.Doc) { out.Lines = out.Lines[1:] })},
		{"raw nothing", load.Raw, raw(func(json.RawMessage) json.RawMessage { return nil })},
		{"raw shorter", load.Raw, raw(func(out json.RawMessage) json.RawMessage { return out[:len(out)-1] })},
		{"raw with another beginning", load.Raw, raw(func(out json.RawMessage) json.RawMessage { out[12]++; return out })},
		{"raw with another end", load.Raw, raw(func(out json.RawMessage) json.RawMessage { out[len(out)-1]++; return out })},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := load.Load{Name: "x", Kind: c.kind, Size: 1024, InFlight: 2}
			r, err := load.Run(t.Context(), c.pair, nil, l, time.Millisecond)
			if !errors.Is(err, load.ErrEcho) || r.Error != err.Error() {
				t.Errorf("Run = %q, %v; want ErrEcho in both", r.Error, err)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		l    load.Load
		pair *fake
		want string
	}{
		{
			"a call fails", load.Load{Kind: load.Typed, Size: 64, InFlight: 4},
			&fake{call: func(context.Context, *load.Doc, *load.Doc) error { return broken }}, "broken",
		},
		{
			"a call fails in an open loop", load.Load{Kind: load.Typed, Size: 64, InFlight: 4, Rate: 1000},
			&fake{call: func(context.Context, *load.Doc, *load.Doc) error { return broken }}, "broken",
		},
		{
			"an answer is lost", load.Load{Kind: load.Typed, Size: 64, InFlight: 4},
			&fake{call: func(ctx context.Context, _, _ *load.Doc) error { <-ctx.Done(); return ctx.Err() }}, "an answer is missing",
		},
		{
			"notifications are lost", load.Load{Kind: load.Notify, Size: 64, InFlight: 1},
			&fake{notify: func(f *fake) { time.Sleep(time.Millisecond) }}, "0 of ",
		},
		{
			"notifications are handled twice", load.Load{Kind: load.Notify, Size: 64, InFlight: 1},
			&fake{notify: func(f *fake) { time.Sleep(time.Millisecond); f.handled.Add(2) }}, "notifications were handled, and",
		},
		{
			"the open call is answered", load.Load{Kind: load.Typed, Size: 64, InFlight: 1, OpenCall: true},
			&fake{call: func(_ context.Context, in, out *load.Doc) error {
				time.Sleep(time.Microsecond)
				*out = *in
				return nil
			}}, "the open call ended: wrong echo",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := load.Run(t.Context(), c.pair, nil, c.l, 20*time.Millisecond)
				if err == nil || !strings.Contains(err.Error(), c.want) || r.Error != err.Error() {
					t.Errorf("Run = %q, %v; want %q in both", r.Error, err, c.want)
				}
			})
		})
	}
}

func TestRunRefuses(t *testing.T) {
	good := load.Load{Name: "good", Kind: load.Typed, Size: 64, InFlight: 1}
	for _, c := range []struct {
		name string
		d    time.Duration
		edit func(l *load.Load)
		want string
	}{
		{"no time", 0, func(*load.Load) {}, "the time 0s"},
		{"kind", time.Millisecond, func(l *load.Load) { l.Kind = "odd" }, `kind "odd"`},
		{"size", time.Millisecond, func(l *load.Load) { l.Size = 27 }, "size 27"},
		{"nobody", time.Millisecond, func(l *load.Load) { l.InFlight = 0 }, "inFlight 0"},
		{"too many", time.Millisecond, func(l *load.Load) { l.InFlight = 4097 }, "inFlight 4097"},
		{"negative rate", time.Millisecond, func(l *load.Load) { l.Rate = -1 }, "rate -1"},
		{"no rate", time.Millisecond, func(l *load.Load) { l.Rate = math.Inf(1) }, "rate +Inf"},
		{"negative share", time.Millisecond, func(l *load.Load) { l.Share = -0.5 }, "share -0.5"},
		{"share and rate", time.Millisecond, func(l *load.Load) { l.Share, l.Rate = 0.5, 1 }, "share 0.5"},
		{"share and calls", time.Millisecond, func(l *load.Load) { l.Share, l.Calls = 0.5, 1 }, "exclude"},
		{"negative calls", time.Millisecond, func(l *load.Load) { l.Calls = -1 }, "calls -1"},
		{"rate and calls", time.Millisecond, func(l *load.Load) { l.Rate, l.Calls = 1, 1 }, "exclude"},
		{"rate of notifications", time.Millisecond, func(l *load.Load) { l.Kind, l.Rate = load.Notify, 1 }, "neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := good
			c.edit(&l)
			pair := &fake{}
			_, err := load.Run(t.Context(), pair, nil, l, c.d)
			if err == nil || !strings.Contains(err.Error(), `load: "good": `) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Run = %v, want %q and the load's name in it", err, c.want)
			}
			if pair.calls.Load() != 0 {
				t.Errorf("Run made %d calls, want none", pair.calls.Load())
			}
		})
	}
}

// TestRunCancelled ends a run from outside.
func TestRunCancelled(t *testing.T) {
	for _, l := range []load.Load{
		{Name: "closed", Kind: load.Typed, Size: 64, InFlight: 4},
		{Name: "open", Kind: load.Typed, Size: 64, InFlight: 4, Rate: 1000},
		{Name: "notify", Kind: load.Notify, Size: 64, InFlight: 4},
	} {
		t.Run(l.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				pair := &fake{
					call: func(ctx context.Context, in, out *load.Doc) error {
						time.Sleep(time.Millisecond)
						*out = *in
						if l.Rate > 0 {
							return nil // the loop itself has to see it
						}
						return ctx.Err()
					},
					notify: func(*fake) { time.Sleep(time.Millisecond) }, // never handled
				}
				start := time.Now()
				_, err := load.Run(ctx, pair, nil, l, time.Hour)
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
					t.Errorf("Run = %v after %v, want the end of the context at once", err, time.Since(start))
				}
			})
		})
	}
}

// TestNotifyWindow holds senders to the window while the other end is slow, and
// counts to the last one handled.
func TestNotifyWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most atomic.Uint64
		pair := &fake{}
		pair.notify = func(f *fake) {
			if ahead := f.calls.Load() - f.handled.Load(); ahead > most.Load() {
				most.Store(ahead)
			}
		}
		stop := make(chan struct{})
		defer close(stop)
		go func() { // handles 1,000 in a millisecond
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					pair.handled.Add(min(1000, pair.calls.Load()-pair.handled.Load()))
				case <-stop:
					return
				}
			}
		}()
		r, err := load.Run(t.Context(), pair, nil, load.Load{Kind: load.Notify, Size: 64, InFlight: 4}, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if got := most.Load(); got < 6000 || got > 6144+4*32 {
			t.Errorf("Run had %d notifications on their way, want about 6,144", got)
		}
		// 50 ms and the time to drain a window, a thousand in each.
		if r.Calls < 50_000 || r.PerSecond < 900_000 || r.PerSecond > 1_000_000 {
			t.Errorf("Run = %d notifications, %.0f a second; want at least 50,000, and a million", r.Calls, r.PerSecond)
		}
		if r.Calls*2 < int(pair.handled.Load()) && pair.handled.Load() != pair.calls.Load() {
			t.Errorf("Run returned with %d of %d handled", pair.handled.Load(), pair.calls.Load())
		}
	})
}

// TestMeter knows what every call allocates.
func TestMeter(t *testing.T) {
	var kept [3]*[128]byte
	pair := &fake{call: func(_ context.Context, in, out *load.Doc) error {
		for i := range kept {
			kept[i] = new([128]byte)
		}
		*out = *in
		return nil
	}}
	l := load.Load{Kind: load.Typed, Size: 64, InFlight: 1, Calls: 10_000}
	r, err := load.Run(t.Context(), pair, nil, l, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Allocs < 3 || r.Allocs > 3.1 || r.Bytes < 384 || r.Bytes > 420 {
		t.Errorf("Run = %v allocations and %v bytes a call, want 3 and 384", r.Allocs, r.Bytes)
	}
	if runtime.GOOS == "linux" && r.CPU <= 0 {
		t.Errorf("Run.CPU = %v, want more than 0", r.CPU)
	}
}

// TestOpenCall grows a heap, or not, beside a call that stays open.
func TestOpenCall(t *testing.T) {
	var kept [][]byte
	for _, c := range []struct {
		name     string
		each     int
		min, max int64
	}{
		{"kept", 100, 1_000_000, 3_000_000},
		{"not kept", 0, math.MinInt64, 200_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept = nil
			ended := false
			pair := &fake{call: func(ctx context.Context, in, out *load.Doc) error {
				if in.Seq == load.Stay {
					<-ctx.Done()
					ended = true
					return ctx.Err()
				}
				if c.each > 0 {
					kept = append(kept, make([]byte, c.each))
				}
				*out = *in
				return nil
			}}
			l := load.Load{Kind: load.Typed, Size: 64, InFlight: 1, Calls: 10_000, OpenCall: true}
			r, err := load.Run(t.Context(), pair, nil, l, time.Microsecond)
			if err != nil || !ended {
				t.Fatalf("Run = %v, the open call ended: %v; want nil and true", err, ended)
			}
			if r.Grown < c.min || r.Grown > c.max {
				t.Errorf("Run.Grown = %d, want %d to %d", r.Grown, c.min, c.max)
			}
		})
	}
}

package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// Trace context beside the params of a notification in an array was read from a buffer
// that had become another message's.
func TestTopLevelTraceInArray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, seen := make(chan struct{}), map[string]int{}
		var reg peer.Registry
		reg.HandleNotification("hold", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
			<-hold
			return nil, nil
		}))
		reg.HandleNotification("n", peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
			seen[peer.MetaFrom(ctx).Text("traceparent")]++
			return nil, nil
		}))
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, TopLevelTrace: true})
		raw.Send(notification("hold"))
		for _, trace := range []string{"aaaa", "bbbb"} {
			for range 50 {
				raw.Send(`[{"jsonrpc":"2.0","method":"n","params":{},"traceparent":"` + trace + `"},{"jsonrpc":"2.0","method":"n","traceparent":"` + trace + `"}]`)
			}
		}
		synctest.Wait()
		close(hold)
		synctest.Wait()
		if len(seen) != 2 || seen["aaaa"] != 100 || seen["bbbb"] != 100 {
			t.Errorf("handlers saw %v", seen)
		}
	})
}

// A call that is refused has no use for the deadline it brought: each kept its timer.
func TestRefusedDeadline(t *testing.T) {
	block := make(chan struct{})
	var reg peer.Registry
	reg.Handle("block", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { <-block; return 1, nil }))
	raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, Deadlines: true, Limits: peer.Limits{InFlight: 1}})
	defer close(block)
	raw.Send(call(`"x"`, "block"))
	held := func(n int) uint64 {
		for i := range n {
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"block","params":{"_meta":{"io.github.duetrpc/timeout":1e12}}}`, i))
			raw.Receive()
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held(1000)
	const n = 20_000
	if after := held(n); after > before+100*n {
		t.Errorf("the heap grows by %d bytes a call that is refused", (after-before)/n)
	}
}

// A function given to Answered that ends its goroutine: the call was answered twice.
func TestAnsweredGoexit(t *testing.T) {
	for _, text := range []string{call(1, "m"), "[" + call(1, "m") + "," + call(2, "m") + "]"} {
		synctest.Test(t, func(t *testing.T) {
			raw, conn := peertest.Against(t, methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
				peer.Answered(ctx, func(error) { runtime.Goexit() })
				return 1, nil
			}}.options())
			raw.Send(text)
			if got := raw.Receive(); !json.Valid([]byte(got)) {
				t.Errorf("answered with %q", got)
			}
			synctest.Wait()
			if got := raw.Waiting(); len(got) > 0 || conn.Stats().InFlight != 0 {
				t.Errorf("then came %q, with %d in flight", got, conn.Stats().InFlight)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := conn.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown() = %v", err)
			}
		})
	}
}

// Answered raced the return of a handler whose call ends in silence, in an array.
func TestAnsweredRace(t *testing.T) {
	raw, conn := peertest.Against(t, func() *peer.Options {
		o := methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			for range 3 {
				go func() {
					for peer.Answered(ctx, func(error) {}) {
						runtime.Gosched()
					}
				}()
			}
			<-ctx.Done()
			return 1, nil
		}}.options()
		o.Profile = &peer.Profile{Cancel: peer.Cancel{Silent: true}}
		return o
	}())
	for i := range 300 {
		raw.Send("["+call(i, "m")+"]", cancelOf(i))
	}
	for conn.Stats().InFlight > 0 {
		runtime.Gosched()
	}
}

// A deadline farther away than a Duration reaches was sent as no time at all.
func TestFarDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := methods{"m": answers(1)}.options()
		o.Deadlines = true
		a, _ := peertest.Pair(t, o, o)
		ctx, cancel := context.WithDeadline(t.Context(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		defer cancel()
		if err := a.Call(ctx, "m", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// The function of OnProgress went on after the context of the call had ended.
func TestProgressAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		calls, done := 0, make(chan error, 1)
		go func() {
			done <- conn.Call(ctx, "m", nil, nil, peer.OnProgress(func(peer.Progress) { calls++; time.Sleep(time.Second) }))
		}()
		raw.Receive()
		for i := range 100 {
			raw.Send(progressText(`"p1"`, fmt.Sprintf(`{"progress":%d}`, i+1)))
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		cancel()
		began, before := time.Now(), calls
		<-done
		if took := time.Since(began); calls > before || took > time.Second {
			t.Errorf("%d more calls in %v", calls-before, took)
		}
	})
}

// A Reporter was bound to the first context it was asked for with.
func TestReporterOfDerived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := peertest.Pair(t, nil, methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			step, cancel := context.WithCancel(ctx)
			p, _ := peer.ProgressFrom(step)
			_ = p.Report(peer.Progress{})
			cancel()
			p, _ = peer.ProgressFrom(ctx)
			return 1, p.Report(peer.Progress{})
		}}.options())
		seen := 0
		if err := a.Call(t.Context(), "m", nil, nil, peer.OnProgress(func(peer.Progress) { seen++ })); err != nil || seen != 2 {
			t.Errorf("Call() = %v after %d reports", err, seen)
		}
	})
}

// Metadata as deep as a call takes was too deep by one in an array, which the other end
// refused whole.
func TestDeepMetaInBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := peertest.Pair(t, nil, methods{"m": answers(1)}.options())
		for depth := 990; depth < 1000; depth++ {
			meta := peer.Meta{"a": json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))}
			ctx, cancel := context.WithTimeout(peer.WithMeta(t.Context(), meta), time.Minute)
			single := a.Call(ctx, "m", nil, nil)
			items := []peer.BatchItem{{Method: "m"}}
			if err := a.Batch(ctx, items); err != nil {
				t.Errorf("depth %d: Batch() = %v, Call() = %v", depth, err, single)
			}
			if both := items[0].Err; (single == nil) != (both == nil) || single != nil && !errors.Is(single, peer.ErrParams) {
				t.Errorf("depth %d: %v alone, %v in an array", depth, single, both)
			}
			cancel()
		}
	})
}

// A call in an array is over when its handler has returned, though others are not.
func TestMetaAfterReturnInBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept context.Context
		raw, _ := peertest.Against(t, methods{
			"m":    func(ctx context.Context, _ *peer.Request) (any, error) { kept = ctx; return 1, nil },
			"slow": func(context.Context, *peer.Request) (any, error) { time.Sleep(time.Second); return 1, nil },
		}.options())
		raw.Send(`[{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":1,"progressToken":1}}},` + call(2, "slow") + "]")
		synctest.Wait()
		_, request := peer.RequestFrom(kept)
		_, progress := peer.ProgressFrom(kept)
		if request || progress || peer.MetaFrom(kept) != nil || peer.Answered(kept, func(error) {}) {
			t.Error("the request can be seen after its handler returned")
		}
		raw.Receive()
	})
}

// A null _meta is none, as a pointer in Go makes it; its bytes and its names are safe.
func TestMetaEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		m := peer.Meta{"a": json.RawMessage("1")}
		ctx := peer.WithMeta(t.Context(), m)
		m["a"][0], m["b"] = '2', json.RawMessage("3")
		type params struct {
			Meta *struct{} `json:"_meta"`
		}
		if err := conn.Notify(ctx, "n", params{}); err != nil {
			t.Fatal(err)
		}
		raw.Want(`{"jsonrpc":"2.0","method":"n","params":{"_meta":{"a":1}}}`)
		bad := peer.WithMeta(t.Context(), peer.Meta{"\xff": json.RawMessage("1")})
		if err := conn.Notify(bad, "n", nil); !errors.Is(err, peer.ErrParams) {
			t.Errorf("Notify() with a name that is not UTF-8 = %v", err)
		}
	})
}

// Taking a Control function away twice took away that of another.
func TestControlRemovedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		n := 0
		remove, _ := conn.Control("x", "token", codec.NumberID(1), func(*codec.Object) {})
		remove()
		_, _ = conn.Control("x", "token", codec.NumberID(1), func(*codec.Object) { n++ })
		remove()
		raw.Send(`{"jsonrpc":"2.0","method":"x","params":{"token":1}}`)
		synctest.Wait()
		if n != 1 {
			t.Error("the function of another is gone")
		}
	})
}

// What extensions reserve is bounded, shared, and given back.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := peertest.Against(t, &peer.Options{Limits: peer.Limits{StreamBytes: 4000}})
		var taken []int64
		for range 4 {
			taken = append(taken, conn.Reserve(1, 2000))
		}
		if got := fmt.Sprint(taken); got != "[1000 750 562 422]" {
			t.Errorf("took %s", got)
		}
		if n := conn.Reserve(400, 400); n != 0 {
			t.Errorf("took %d, where a quarter of the rest is less", n)
		}
		for _, n := range taken {
			conn.Unreserve(n)
		}
		if n := conn.Reserve(1, 500); n != 500 {
			t.Errorf("took %d of what was given back", n)
		}
	})
}

package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/stream"
)

// Space around an item counted here and not there, so that credit was lost with each.
func TestSpaceAroundItems(t *testing.T) {
	const lines = stream.Method[ask, json.RawMessage, string]("run")
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		lines.Handle(&reg, func(_ context.Context, in ask, send func(json.RawMessage) error) (string, error) {
			for range in.N {
				if err := send(json.RawMessage(" {\"a\": 1}\n")); err != nil {
					return "", err
				}
			}
			return "done", nil
		})
		a, _ := peertest.Pair(t, nil, &peer.Options{Handler: &reg})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if items, err := collect(lines.Call(ctx, a, ask{1000}, stream.Window(4, 100))); len(items) != 1000 || err != nil {
			t.Errorf("%d items, %v", len(items), err)
		}
	})
}

// The end that shuts down finishes the streams of its own calls, both ways.
func TestShutdownFinishesStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := peertest.Pair(t, nil, counting(nil))
		ended := make(chan error, 1)
		n := 0
		for _, err := range run.Call(t.Context(), a, ask{500}).All() {
			if err != nil {
				t.Fatalf("after %d items: %v", n, err)
			}
			if n++; n == 10 {
				go func() { ended <- a.Shutdown(t.Context()) }()
				synctest.Wait()
			}
		}
		if err := <-ended; err != nil || n != 500 {
			t.Errorf("Shutdown() = %v after %d items", err, n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a, _ := peertest.Pair(t, nil, gathering(nil))
		f := collecting.Call(t.Context(), a, ask{})
		for i := range 10 {
			if err := f.Send(i + 1); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- a.Shutdown(t.Context()) }()
		synctest.Wait()
		if err := f.Send(11); err != nil {
			t.Errorf("Send() = %v while the connection shuts down", err)
		}
		if out, err := f.Result(); !slices.Equal(out, upTo(11)) || err != nil || <-ended != nil {
			t.Errorf("Result() = %v, %v", out, err)
		}
	})
}

// A window larger than the numbers of the wire was none, or one nobody could fill.
func TestHugeWindow(t *testing.T) {
	for _, bytes := range []int64{1 << 53, math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			a, _ := peertest.Pair(t, nil, counting(nil))
			n := 0
			for _, err := range run.Call(ctx, a, ask{10000}, stream.Window(4, bytes)).All() {
				if err != nil {
					t.Fatalf("%d: after %d items: %v", bytes, n, err)
				}
				if n++; n == 10 {
					time.Sleep(time.Second)
				}
			}
			a, _ = peertest.Pair(t, nil, gathering(nil, stream.Window(4, bytes)))
			f := collecting.Call(ctx, a, ask{})
			for i := range 20 {
				if err := f.Send(i); err != nil {
					t.Fatalf("%d: Send %d: %v", bytes, i, err)
				}
			}
			if out, err := f.Result(); len(out) != 20 || err != nil {
				t.Errorf("%d: Result() = %v, %v", bytes, out, err)
			}
		})
	}
}

// A buffer smaller than what the window opens to ended streams that kept to their credit.
func TestSmallBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := peertest.Pair(t, nil, counting(nil))
		n := 0
		for _, err := range run.Call(t.Context(), a, ask{5000}, stream.Buffer(100, 1<<20)).All() {
			if err != nil {
				t.Fatalf("after %d items: %v", n, err)
			}
			if n++; n == 2000 {
				time.Sleep(time.Second)
			}
		}
	})
}

// The window opens for who is quick, up to its bound, and closes for who is not.
func TestWindowOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		s := run.Call(t.Context(), conn, ask{})
		raw.Receive()
		var pause atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range s.All() {
				if d := pause.Load(); d > 0 {
					time.Sleep(time.Duration(d))
				}
			}
		}()
		var sent, granted int64 = 0, 64
		// fill sends as much as there is credit for, and returns how much there is then.
		fill := func(wait func()) int64 {
			for ; sent < granted; sent++ {
				raw.Send(item("$/progress", `{"token":1,"value":1}`))
			}
			wait()
			for _, m := range raw.Waiting() {
				var c struct{ Params struct{ Items int64 } }
				if err := json.Unmarshal([]byte(m), &c); err != nil || c.Params.Items < granted {
					t.Fatalf("received %s", m)
				}
				granted = c.Params.Items
			}
			return granted - sent
		}
		for range 10 {
			fill(synctest.Wait)
		}
		if got := fill(synctest.Wait); got < 512 || got > 1024 {
			t.Errorf("%d items ahead of a reader that takes no time, want up to 1024, half of it at least", got)
		}
		pause.Store(int64(5 * time.Millisecond)) // 200 a second, and two in 10 ms
		for range 3 {
			fill(func() { time.Sleep(10 * time.Second) })
		}
		if got := fill(func() { time.Sleep(10 * time.Second) }); got != 64 {
			t.Errorf("%d items ahead of a slow reader, want 64", got)
		}
		raw.Send(answer(1, `"done"`))
		<-done
	})
}

type panicky struct{}

func (*panicky) UnmarshalJSON([]byte) error { panic("of the user") }

// User code in the goroutine of a call: what ends it ends the wait, and what panics there
// panics where somebody waits.
func TestUserCodeInStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		run.Handle(&reg, func(ctx context.Context, _ ask, send func(int) error) (string, error) {
			progress, _ := peer.ProgressFrom(ctx)
			return "done", errors.Join(progress.Report(peer.Progress{}), send(1))
		})
		collecting.Handle(&reg, func(ctx context.Context, _ ask, _ iter.Seq2[int, error]) ([]int, error) {
			progress, _ := peer.ProgressFrom(ctx)
			return nil, progress.Report(peer.Progress{})
		})
		a, _ := peertest.Pair(t, nil, &peer.Options{Handler: &reg})
		goexit := stream.Calling(peer.OnProgress(func(peer.Progress) { runtime.Goexit() }))
		if _, err := run.Call(t.Context(), a, ask{1}, goexit).Result(); err == nil {
			t.Error("Result() = nil after Goexit")
		}
		if _, err := collecting.Call(t.Context(), a, ask{1}, goexit).Result(); err == nil {
			t.Error("Result() of a feed = nil after Goexit")
		}
		for name, f := range map[string]func(){
			"method": func() { _, _ = stream.Method[ask, int, panicky]("run").Call(t.Context(), a, ask{1}).Result() },
			"loop": func() {
				for range stream.Method[ask, int, panicky]("run").Call(t.Context(), a, ask{1}).All() {
				}
			},
			"feed": func() { _, _ = stream.Feed[ask, int, panicky]("collect").Call(t.Context(), a, ask{1}).Result() },
		} {
			func() {
				defer func() {
					if v := recover(); v != "of the user" {
						t.Errorf("%s: recovered %v", name, v)
					}
				}()
				f()
			}()
		}
		if a.Stats().Pending != 0 {
			t.Error("a call is left")
		}
	})
}

// heap is what the process holds.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What feeds send to handlers that do not take it is bounded for the whole connection,
// by StreamBytes; the ones beyond it are refused or end, and it is given back.
func TestFeedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		const up = stream.Feed[ask, json.RawMessage, int]("up")
		var reg peer.Registry
		up.Handle(&reg, func(context.Context, ask, iter.Seq2[json.RawMessage, error]) (int, error) { <-block; return 0, nil })
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg, Limits: peer.Limits{MessageBytes: 1 << 20, StreamBytes: 4 << 20}})
		before, big := heap(), `"`+strings.Repeat("x", 1<<20-200)+`"`
		wanted, refused := 0, 0
		for i := range 64 {
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"up","params":{"n":1,"_meta":{"io.github.duetrpc/feed":{"token":%d}}}}`, i, i))
			if got := raw.Receive(); strings.Contains(got, "$/stream/want") {
				wanted++
			} else if got == fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32010,"message":"overloaded"}}`, i) {
				refused++
			} else {
				t.Fatalf("received %s", got)
			}
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/stream/feed","params":{"token":%d,"value":%s}}`, i, big))
		}
		synctest.Wait()
		if held := (heap() - before) >> 20; held > 12 || wanted == 0 || conn.Err() != nil {
			t.Errorf("%d MiB held by %d feeds, %d refused; %v", held, wanted, refused, conn.Err())
		}
		close(block)
		synctest.Wait()
		raw.Waiting()
		if n := conn.Reserve(1, 4<<20); n != 1<<20 {
			t.Errorf("%d of the bytes were given back", n)
		}
	})
}

// Items that wait for credit are not kept encoded.
func TestSenderMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const down = stream.Method[ask, string, int]("down")
		text := strings.Repeat("x", 64<<10)
		var reg peer.Registry
		down.Handle(&reg, func(_ context.Context, _ ask, send func(string) error) (int, error) { return 0, send(text) })
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg})
		before := heap()
		for i := range 500 {
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"down","params":{"n":1,"_meta":{"io.github.duetrpc/stream":{"token":%d,"items":0,"bytes":0}}}}`, i, i))
		}
		synctest.Wait()
		if held := (heap() - before) >> 20; held > 10 || conn.Stats().InFlight != 500 {
			t.Errorf("%d MiB held by %d calls", held, conn.Stats().InFlight)
		}
	})
}

// userContext tells who asks it.
type userContext struct {
	context.Context
	stack chan string
}

func (c *userContext) Value(key any) any {
	buf := make([]byte, 16<<10)
	select {
	case c.stack <- string(buf[:runtime.Stack(buf, false)]):
	default:
	}
	return c.Context.Value(key)
}

// A bound that is passed ends the stream, and with it a context of the user's: not in the
// reader, which runs no code of theirs.
func TestOverflowOutsideReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		base, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := &userContext{base, make(chan string, 100)}
		s := run.Call(ctx, conn, ask{1}, stream.Buffer(1, 1), stream.Window(1, 1))
		raw.Receive()
		for range 3 {
			raw.Send(item("$/progress", `{"token":1,"value":1}`))
		}
		synctest.Wait()
		close(ctx.stack)
		for stack := range ctx.stack {
			if strings.Contains(stack, "peer.(*Conn).read(") {
				t.Errorf("the reader ran\n%s", stack)
			}
		}
		ctx.stack = nil
		if items, err := collect(s); len(items) != 1 || !errors.Is(err, stream.ErrSlowConsumer) {
			t.Errorf("%v, %v", items, err)
		}
	})
}

// What this end's decoder says, with its names of types, is nobody else's.
func TestItemErrorStaysHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := dialects()["flat"]
		p.Cancel = peer.Cancel{Method: "notifications/cancelled", Field: "requestId", Reason: "reason", Silent: true}
		raw, conn := peertest.Against(t, &peer.Options{Profile: p})
		type secretType struct{ A int }
		s := stream.Method[ask, secretType, string]("run").Call(t.Context(), conn, ask{1})
		done := make(chan error, 1)
		go func() {
			_, err := collect(s)
			done <- err
		}()
		raw.Receive()
		raw.Send(item("notifications/progress", `{"progressToken":1,"progress":1,"_meta":{"io.github.duetrpc/stream":"text"}}`))
		raw.Want(item("notifications/cancelled", `{"requestId":1,"reason":"stream: an item could not be read"}`))
		if err := <-done; !errors.As(err, new(*stream.ItemError)) {
			t.Errorf("the loop ends with %v", err)
		}
	})
}

// The items of a feed yield nothing once the handler has returned.
func TestFeedAfterReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept iter.Seq2[int, error]
		var reg peer.Registry
		collecting.Handle(&reg, func(_ context.Context, _ ask, items iter.Seq2[int, error]) ([]int, error) {
			kept = items
			return nil, nil
		})
		a, _ := peertest.Pair(t, nil, &peer.Options{Handler: &reg})
		_, _ = collecting.Call(t.Context(), a, ask{}).Result()
		for item, err := range kept {
			t.Errorf("yields %v, %v", item, err)
		}
	})
}

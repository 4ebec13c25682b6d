package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
)

// This file is about code of the user's that does what it should not.

// panicLog is a slog.Handler that panics on every line.
type panicLog struct {
	slog.Handler
	lines *atomic.Int64
}

func (l panicLog) Enabled(context.Context, slog.Level) bool { return true }

func (l panicLog) Handle(context.Context, slog.Record) error {
	if l.lines.Add(1) > 100 {
		select {} // so that an endless loop fails the test and does not hang it
	}
	panic("logger")
}

// The panic of a logger was logged, which panicked, for ever.
func TestLoggerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines atomic.Int64
		opts := methods{"panic": func(context.Context, *peer.Request) (any, error) { panic("handler") }}.options()
		opts.Logger = slog.New(panicLog{slog.DiscardHandler, &lines})
		raw, conn := peertest.Against(t, opts)
		raw.Send(call(7, "panic"), result(99, "1"))
		raw.Want(failure(7, -32603, "internal error"))
		synctest.Wait()
		// One line of the panic, one of the unknown response.
		if lost, n := conn.Stats().Events[peer.Lost], lines.Load(); lost != 2 || n != 2 {
			t.Errorf("%d lines were tried and %d lost, want 2 and 2", n, lost)
		}
		_ = conn.Close()
		time.Sleep(time.Second)
		if !isDone(conn) {
			t.Error("Done is not closed after Close")
		}
	})
}

// watchful is a context whose Value runs a function.
type watchful struct {
	context.Context
	look func()
}

func (w watchful) Value(key any) any { w.look(); return w.Context.Value(key) }

// A caller's context was asked for its values under the lock of the connection.
// It runs outside a bubble, which does not see a deadlock on a mutex.
func TestContextUsesConnection(t *testing.T) {
	started, leave := make(chan struct{}), make(chan struct{})
	raw, conn := peertest.Against(t, methods{"wait": func(context.Context, *peer.Request) (any, error) {
		close(started)
		<-leave
		return 1, nil
	}}.options())
	raw.Send(call(7, "wait"))
	<-started
	down := make(chan error, 1)
	go func() { down <- conn.Shutdown(context.Background()) }()
	for id := 8; ; id++ { // until it shuts down
		raw.Send(call(id, "none"))
		if strings.Contains(raw.Receive(), "-32011") {
			break
		}
	}
	ctx := watchful{context.Background(), func() { conn.Stats() }}
	// A panic here would wait for the clean-up, which would deadlock, too.
	alarm := time.AfterFunc(serverPatience, func() { panic("the connection deadlocks with a caller's context") })
	for what, err := range map[string]error{
		"Call": conn.Call(ctx, "m", nil, nil), "Notify": conn.Notify(ctx, "m", nil),
		"Batch": conn.Batch(ctx, []peer.BatchItem{{Method: "m"}}),
	} {
		if !errors.Is(err, peer.ErrShutdown) {
			t.Errorf("%s() = %v, want ErrShutdown", what, err)
		}
	}
	alarm.Stop()
	close(leave)
	if err := <-down; err != nil {
		t.Errorf("Shutdown() = %v, want nil", err)
	}
}

// leaves ends the goroutine that encodes it, as a FailNow there would.
type leaves struct{}

func (leaves) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

// A goroutine that ended in the encoding of a result answered nobody and kept
// its place, alone and in an array.
func TestGoexitInResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"m": answers(leaves{})}.options())
		raw.Send(call(7, "m"))
		synctest.Wait()
		raw.Send("[" + call(8, "m") + "]")
		synctest.Wait()
		want := []string{failure(7, -32603, "internal error"), "[" + failure(8, -32603, "internal error") + "]"}
		if got := raw.Waiting(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("answers %q, want %q", got, want)
		}
		if n := conn.Stats().InFlight; n != 0 {
			t.Errorf("InFlight = %d, want 0", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := conn.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown() = %v, want nil", err)
		}
	})
}

// The same in the params of a call left that in the table for ever.
func TestGoexitInParams(t *testing.T) {
	for name, send := range map[string]func(c *peer.Conn){
		"Call": func(c *peer.Conn) { _ = c.Call(context.Background(), "m", leaves{}, nil) },
		"Batch": func(c *peer.Conn) {
			_ = c.Batch(context.Background(), []peer.BatchItem{{Method: "a"}, {Method: "m", Params: leaves{}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, conn := peertest.Against(t, nil)
				left := make(chan struct{})
				go func() { defer close(left); send(conn) }()
				<-left
				if n := conn.Stats().Pending; n != 0 {
					t.Errorf("Pending = %d after the caller left, want 0", n)
				}
			})
		})
	}
}

// The same in a Control function ended the reader and not the connection.
func TestGoexitInControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		_, _ = conn.Control("ctl", "", codec.ID{}, func(*codec.Object) { runtime.Goexit() })
		waits := make(chan error, 1)
		go func() { waits <- conn.Call(t.Context(), "x", nil, nil) }()
		raw.Receive()
		raw.Send(notification("ctl"))
		if !isDone(conn) || conn.Err() == nil {
			t.Fatalf("Done is closed: %t, Err = %v, want an end with an error", isDone(conn), conn.Err())
		}
		if err := <-waits; !errors.Is(err, conn.Err()) {
			t.Errorf("the pending call = %v, want %v", err, conn.Err())
		}
	})
}

// panicTransport panics in one of its methods.
type panicTransport struct {
	peer.Transport
	in string
}

func (p panicTransport) at(method string) {
	if p.in == method {
		panic("transport")
	}
}

func (p panicTransport) Read(ctx context.Context, buf []byte) ([]byte, error) {
	b, err := p.Transport.Read(ctx, buf)
	p.at("Read")
	return b, err
}

func (p panicTransport) Write(ctx context.Context, msgs ...[]byte) error {
	p.at("Write")
	return p.Transport.Write(ctx, msgs...)
}

func (p panicTransport) Close(cause error) error { p.at("Close"); return p.Transport.Close(cause) }

// A panic of a Transport ended the process.
func TestTransportPanics(t *testing.T) {
	for _, in := range []string{"Read", "Write", "Close"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := peer.Pipe()
				raw := peertest.NewRaw(t, a)
				conn := peertest.Start(t, panicTransport{b, in}, &peer.Options{Limits: peer.Limits{MessageBytes: 1024}})
				if in == "Close" {
					raw.Send(strings.Repeat(" ", 2048)) // a bound is passed
				} else {
					raw.Send(call(1, "x"))
				}
				if !isDone(conn) || conn.Err() == nil {
					t.Errorf("Done is closed: %t, Err = %v, want an end with an error", isDone(conn), conn.Err())
				}
			})
		})
	}
}

// A context that outlived its handler could call on while the connection shut
// down.
func TestShutdownRefusesKeptContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := make(chan context.Context, 1)
		raw, conn := peertest.Against(t, methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			kept <- context.WithoutCancel(ctx)
			return 1, nil
		}}.options())
		raw.Send(call(7, "m"))
		raw.Want(result(7, "1"))
		own, down := make(chan error, 1), make(chan error, 1)
		go func() { own <- conn.Call(t.Context(), "own", nil, nil) }() // Shutdown waits for it
		raw.Want(call(1, "own"))
		go func() { down <- conn.Shutdown(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(<-kept, time.Second)
		defer cancel()
		err := conn.Call(ctx, "late", nil, nil)
		wantSent(t, err, pending.NotSent)
		for what, err := range map[string]error{"Call": err, "Notify": conn.Notify(ctx, "late", nil)} {
			if !errors.Is(err, peer.ErrShutdown) {
				t.Errorf("%s() with a kept context = %v, want ErrShutdown", what, err)
			}
		}
		raw.Send(result(1, "1"))
		if err := errors.Join(<-own, <-down); err != nil {
			t.Errorf("own call, Shutdown = %v, want nil", err)
		}
	})
}

// The log of a refused notification held names that the other end had chosen.
func TestNamesAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "sk-secret"
		var reg peer.Registry
		peer.Notification[map[string]int]("set").Handle(&reg, func(context.Context, map[string]int) error { return nil })
		peer.Method[map[string]int, int]("get").Handle(&reg, func(context.Context, map[string]int) (int, error) { return 1, nil })
		var rec record
		raw, conn := peertest.Against(t, rec.attach(&peer.Options{Handler: &reg}))
		raw.Send(`{"jsonrpc":"2.0","method":"set","params":{"` + secret + `":"x"}}`)
		if got := ask(raw, "get", `{"`+secret+`":"x"}`); !strings.Contains(got, `"data":{"pointer":"/`+secret+`"`) {
			t.Errorf("the answer to a call = %s, want the pointer in its data", got)
		}
		synctest.Wait()
		refused := rec.of(peer.RefusedNotification)
		if len(refused) != 1 || refused[0].Err == nil || conn.Stats().Events[peer.RefusedNotification] != 1 {
			t.Fatalf("events %+v, want one refused notification with its error", refused)
		}
		if text := refused[0].Err.Error(); strings.Contains(text, secret) {
			t.Errorf("Event.Err = %q holds the name", text)
		}
		if rec.lines("refused notification") != 1 || rec.lines(secret) != 0 {
			t.Errorf("%d lines tell the refusal and %d the name, want 1 and 0", rec.lines("refused notification"), rec.lines(secret))
		}
	})
}

// Each answer of a Batch waited OrderWait of its own.
func TestBatchWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"hang": hangs}.options())
		done := make(chan error, 1)
		items := make([]peer.BatchItem, 20)
		answered := make([]string, len(items))
		for i := range items {
			items[i].Method = "m"
			answered[i] = result(i+1, "1")
		}
		go func() { done <- conn.Batch(t.Context(), items) }()
		raw.Receive()
		raw.Send(notification("hang"))
		began := time.Now()
		raw.Send("[" + strings.Join(answered, ",") + "]")
		if err := <-done; err != nil {
			t.Errorf("Batch() = %v, want nil", err)
		}
		wantTook(t, "Batch", began, 5*time.Second)
		for i := range items {
			if items[i].Err != nil {
				t.Errorf("item %d: %v, want nil", i, items[i].Err)
			}
		}
	})
}

// allocated is how many bytes f allocates, at the least of three times.
func allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// The reader made a map of all params of a cancel.
func TestCancelIsReadInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"hang": hangs}.options())
		var junk strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&junk, `,"%d":1`, i)
		}
		big := func(method string) string {
			return `{"jsonrpc":"2.0","method":"` + method + `","params":{"id":9` + junk.String() + `}}`
		}
		cancels, others := big("$/cancelRequest"), big("$/cancelRequesu")
		cancel := allocated(func() { raw.Send(cancels); synctest.Wait() })
		other := allocated(func() { raw.Send(others); synctest.Wait() })
		if cancel > other+1<<20 {
			t.Errorf("a cancel of 100,000 members takes %d KiB, another notification %d, want no more than 1 MiB between", cancel>>10, other>>10)
		}
		if n := conn.Stats().Events[peer.UnknownCancel]; n != 3 {
			t.Errorf("%d unknown cancels, want 3", n)
		}
		raw.Send(call(7, "hang"))
		synctest.Wait()
		const nest = `{"id":[{"id":8},"}"]}`
		raw.Send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"a":` + nest + `,"id":7,"b":` + nest + junk.String() + `}}`)
		raw.Want(cancelled(7))
	})
}

// The whole of a long array was decoded before its length was looked at.
func TestPositionalIsReadInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		peer.Method[pair, int]("add").Handle(&reg, func(context.Context, pair) (int, error) { return 1, nil }, peer.Positional())
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		ones := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
		const want = `"error":{"code":-32602,"message":"invalid params: /2: at most 2 elements are known","data":{"pointer":"/2","reason":"at most 2 elements are known"}}`
		takes := allocated(func() {
			if got := ask(raw, "add", ones(100_000)); got != want {
				t.Errorf("answer = %s, want %s", got, want)
			}
		})
		if takes > 3<<20 { // the message itself is copied a few times
			t.Errorf("refusing 100,000 elements of 200 KiB takes %d KiB, want no more than 3 MiB", takes>>10)
		}
		if got := ask(raw, "add", ones(2)); got != `"result":1` {
			t.Errorf("answer to two elements = %s, want 1", got)
		}
	})
}

// A nil in the wrong place was found by the first request, or never.
func TestNilsPanic(t *testing.T) {
	var none *peer.Registry
	plain := func(h peer.Handler) peer.Handler { return h }
	for _, tc := range []struct {
		name, says string
		f          func()
	}{
		{"Chain(nil)", "Chain needs a Handler", func() { peer.Chain(nil) }},
		{"Chain of a nil registry", "Chain needs a Handler", func() { peer.Chain(none) }},
		{"nil middleware", "middleware 1 is nil", func() { peer.Chain(&peer.Registry{}, plain, nil) }},
		{"middleware that returns nil", "middleware 1 returned nil", func() {
			peer.Chain(&peer.Registry{}, plain, func(peer.Handler) peer.Handler { return nil })
		}},
		{"Outgoing that returns nil", "Options.Outgoing", func() {
			_, b := peer.Pipe()
			peer.New(b, &peer.Options{Outgoing: []func(peer.Caller) peer.Caller{func(peer.Caller) peer.Caller { return nil }}})
		}},
	} {
		if got := panicText(tc.f); !strings.Contains(got, tc.says) {
			t.Errorf("%s panics with %q, want %q in it", tc.name, got, tc.says)
		}
	}
}

func TestNilCallOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, _ := peertest.Pair(t, nil, methods{"m": answers(1)}.options())
		var got int
		if err := left.Call(t.Context(), "m", nil, &got, nil, peer.Note("n"), nil); err != nil || got != 1 {
			t.Errorf("Call() with nil options = %d, %v, want 1", got, err)
		}
	})
}

func TestNegativeDepth(t *testing.T) {
	err := (&peer.Options{Profile: &peer.Profile{Rules: codec.Rules{Depth: -1}}}).Validate()
	var bad *peer.OptionError
	if !errors.As(err, &bad) || bad.Field != "Profile.Rules.Depth" {
		t.Errorf("Validate() = %v, want an *OptionError of Profile.Rules.Depth", err)
	}
}

// Control comes before a handler of the same name, in an array too, until it is
// removed.
func TestControlBeforeHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled, controlled atomic.Int32
		raw, conn := peertest.Against(t, methods{"m": func(context.Context, *peer.Request) (any, error) {
			handled.Add(1)
			return 1, nil
		}}.options())
		remove, _ := conn.Control("m", "", codec.ID{}, func(params *codec.Object) {
			if params.Next() {
				t.Errorf("params have %s, want none", params.Name)
			}
			controlled.Add(1)
		})
		want := func(step string, c, h int32) {
			t.Helper()
			synctest.Wait()
			if controlled.Load() != c || handled.Load() != h {
				t.Errorf("%s: %d controlled and %d handled, want %d and %d", step, controlled.Load(), handled.Load(), c, h)
			}
		}
		raw.Send(notification("m"))
		want("alone", 1, 0)
		raw.Send("[" + notification("m") + "," + notification("m") + "]")
		want("in an array", 3, 0)
		raw.Send(call(7, "m"))
		raw.Want(result(7, "1"))
		want("a call", 3, 1)
		remove()
		raw.Send(notification("m"), "["+notification("m")+"]")
		want("removed", 3, 3)
	})
}

// How late an answer was could not be told from how long the call took.
func TestLateEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec record
		raw, conn := peertest.Against(t, rec.attach(&peer.Options{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := conn.Call(ctx, "slow", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call() = %v, want its deadline", err)
		}
		time.Sleep(2 * time.Second)
		raw.Send(result(1, "1"))
		synctest.Wait()
		late := rec.of(peer.LateResponse)
		if len(late) != 1 || late[0].After != 3*time.Second || late[0].Late != 2*time.Second {
			t.Errorf("events %+v, want one after 3s that is 2s late", late)
		}
	})
}

// flags is written as an array.
type flags uint64

func (f *flags) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d]", uint64(*f)), nil }

// sum reads an array and has no form of its own to be written.
type sum int

func (s *sum) UnmarshalJSON(b []byte) error {
	var all []int
	err := json.Unmarshal(b, &all)
	for _, n := range all {
		*s += sum(n)
	}
	return err
}

// Scalar types with a JSON form of their own were refused where the method had a
// pointer receiver, or only reads.
func TestScalarWithJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		if text := panicText(func() {
			peer.Method[flags, int]("flags").Handle(&reg, func(context.Context, flags) (int, error) { return 1, nil })
			peer.Notification[flags]("flags").Handle(&reg, func(context.Context, flags) error { return nil })
			peer.Method[sum, int]("sum").Handle(&reg, func(_ context.Context, s sum) (int, error) { return int(s), nil })
		}); text != "" {
			t.Fatalf("Handle() panics with %q", text)
		}
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		if got := ask(raw, "sum", "[1,2,3]"); got != `"result":6` {
			t.Errorf("answer = %s, want 6", got)
		}
	})
}

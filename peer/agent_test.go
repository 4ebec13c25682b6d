package peer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// Faults of other libraries under what agents do, each with the test that keeps it
// away; some have theirs elsewhere:
//
//   - a cancel that came before its request was registered and was lost, and one that
//     hit the newer of two calls: TestCancelAtOnce;
//   - a cancel behind the request it cancels: TestCancelPassesNotifications;
//   - a caller that waits for its own cancel to be delivered: TestCancelsLeaveTogether;
//   - a request in a notification handler that waits for that handler:
//     TestOrderNotificationHandlerCalls;
//   - a Call that returns before the updates ahead of its answer were handled:
//     TestProgressBeforeReturn, TestOrderBarrier;
//   - a queue of updates that ended the connection in the middle of a turn:
//     TestProgressFlood, and TestSlowReaderHoldsUpItself of package stream;
//   - progress after the answer: TestProgressEnds, TestProgressForNobody;
//   - a push before the reply to its subscription: TestAnswered, and package stream.

// A cancel right behind its call finds it, in one array and in two messages, though
// nothing of the call has run; of several it finds the one it names, and of our own
// calls none.
func TestCancelAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"hang": hangs}.options())
		for id := range 100 {
			raw.Send(call(id, "hang"), cancelOf(id))
			raw.Want(cancelled(id))
		}
		raw.Send("[" + call(1, "hang") + "," + cancelOf(1) + "]")
		raw.Want("[" + cancelled(1) + "]")
		raw.Send(call(1, "hang"), call(2, "hang"), call(`"1"`, "hang"))
		own := make(chan error, 1)
		go func() { own <- conn.Call(t.Context(), "ours", nil, nil) }()
		raw.Want(call(1, "ours"))
		raw.Send(cancelOf(1))
		raw.Want(cancelled(1))
		raw.Send(cancelOf(1)) // theirs is over, and ours is not theirs to cancel
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 || conn.Stats().InFlight != 2 || conn.Stats().Events[peer.UnknownCancel] != 1 {
			t.Errorf("left %q with %d in flight and %v", got, conn.Stats().InFlight, conn.Stats().Events)
		}
		raw.Send(result(1, "7"))
		if err := <-own; err != nil {
			t.Errorf("our own call = %v, though only theirs was cancelled", err)
		}
	})
}

// Callers that leave while nothing can be written return at once, all of them; and when
// it can be again, the cancel of each call that left does.
func TestCancelsLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		raw := peertest.NewRaw(t, a)
		b, open := gated(b)
		conn := peertest.Start(t, b, nil)
		ctx, cancel := context.WithCancel(t.Context())
		const n = 1000
		done := make(chan error, n)
		for range n {
			go func() { done <- conn.Call(ctx, "m", nil, nil) }()
		}
		synctest.Wait()
		cancel()
		began := time.Now()
		for range n {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		wantTook(t, "the callers", began, 0)
		open()
		synctest.Wait()
		calls, cancels := 0, 0
		for _, text := range raw.Waiting() {
			if strings.Contains(text, "cancelRequest") {
				cancels++
			} else {
				calls++
			}
		}
		if calls != cancels || calls == 0 {
			t.Errorf("%d calls left, and %d cancels", calls, cancels)
		}
	})
}

// Why a caller gives up goes along where the profile has a place for it, and arrives.
func TestCancelReason(t *testing.T) {
	for _, test := range []struct {
		name  string
		end   func(ctx context.Context) (context.Context, context.CancelFunc)
		field string
		want  string // the params
	}{
		{"a reason", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(fmt.Errorf("wrapped: %w", &peer.CancelError{Reason: "the user\nleft"})) }
		}, "reason", `{"requestId":1,"reason":"the user\nleft"}`},
		{"no place", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(&peer.CancelError{Reason: "x"}) }
		}, "", `{"requestId":1}`},
		{"none", context.WithCancel, "reason", `{"requestId":1}`},
		{"a cause of another kind", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(errors.New("internal detail")) }
		}, "reason", `{"requestId":1}`},
		{"time", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			return ctx, func() { <-ctx.Done(); cancel() }
		}, "reason", `{"requestId":1,"reason":"deadline exceeded"}`},
		{"too long", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(&peer.CancelError{Reason: strings.Repeat("é", 1<<20)}) }
		}, "reason", `{"requestId":1,"reason":"` + strings.Repeat("é", 512) + `"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Profile: &peer.Profile{Cancel: peer.Cancel{Field: "requestId", Reason: test.field}}})
				ctx, end := test.end(t.Context())
				done := make(chan error, 1)
				go func() { done <- conn.Call(ctx, "m", nil, nil) }()
				raw.Want(call(1, "m"))
				end()
				<-done
				raw.Want(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":` + test.want + `}`)
			})
		})
	}
}

// What is sent by a function given to Answered comes behind the answer, in an array too;
// where there will be no answer it is told why.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outcomes := make(chan error, 10)
		contexts := make(chan context.Context, 10)
		subscribe := func(ctx context.Context, req *peer.Request) (any, error) {
			contexts <- ctx
			conn := req.Conn
			for i := range 2 {
				if !peer.Answered(ctx, func(err error) {
					outcomes <- err
					if err == nil {
						_ = conn.Notify(context.Background(), fmt.Sprint("push", i), nil)
					}
				}) {
					t.Error("Answered = false in a handler")
				}
			}
			return 1, nil
		}
		raw, _ := peertest.Against(t, methods{"subscribe": subscribe}.options())
		raw.Send(call(1, "subscribe"))
		raw.Want(result(1, "1"), notification("push0"), notification("push1"))
		raw.Send("[" + call(1, "subscribe") + "," + call(2, "subscribe") + "]")
		got := raw.Receive()
		if !strings.HasPrefix(got, "[") {
			t.Errorf("%s came before the answer", got)
		}
		raw.Want(notification("push0"), notification("push1"), notification("push0"), notification("push1"))
		for range 6 {
			if err := <-outcomes; err != nil {
				t.Errorf("told of %v, and there was an answer", err)
			}
		}
		kept := <-contexts
		if peer.Answered(kept, func(error) { t.Error("called") }) || peer.Answered(t.Context(), func(error) { t.Error("called") }) {
			t.Error("Answered = true after the handler, or outside of one")
		}
	})
}

// Nor is it called without an error where the answer never leaves: silence after a
// cancel, and the end of the connection.
func TestAnsweredNever(t *testing.T) {
	for _, batch := range []bool{false, true} {
		for _, silent := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				outcomes := make(chan error, 1)
				opts := methods{"hang": func(ctx context.Context, _ *peer.Request) (any, error) {
					peer.Answered(ctx, func(err error) { outcomes <- err })
					<-ctx.Done()
					return 1, nil
				}}.options()
				opts.Profile = &peer.Profile{Cancel: peer.Cancel{Silent: silent}}
				raw, conn := peertest.Against(t, opts)
				text := call(1, "hang")
				if batch {
					text = "[" + text + "]"
				}
				raw.Send(text)
				synctest.Wait()
				if silent {
					raw.Send(cancelOf(1))
				} else {
					_ = conn.Close()
				}
				if err := <-outcomes; err == nil {
					t.Errorf("batch %t, silent %t: told that the answer is queued", batch, silent)
				}
			})
		}
	}
}

// A notification that is encoded first is held to the rules of others.
func TestEncode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Limits: peer.Limits{MessageBytes: 1024}})
		before, after := []byte(`{"token":7,"value":`), []byte(`}`)
		e, err := conn.Encode("m", before, map[string]int{"a": 1}, after)
		if err != nil || e.Size != len(`{"a":1}`) {
			t.Fatalf("Encode() = size %d, %v", e.Size, err)
		}
		for range 2 {
			e, err := conn.Encode("dropped", nil, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Drop()
		}
		if err := e.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
		raw.Want(`{"jsonrpc":"2.0","method":"m","params":{"token":7,"value":{"a":1}}}`)
		e, err = conn.Encode("now", before, "x", after)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Now(t.Context()); err != nil {
			t.Fatal(err)
		}
		raw.Want(`{"jsonrpc":"2.0","method":"now","params":{"token":7,"value":"x"}}`)
		var limit *peer.LimitError
		if _, err := conn.Encode("m", before, strings.Repeat("x", 1024), after); !errors.As(err, &limit) || limit.What != "MessageBytes" {
			t.Errorf("Encode() of what is too long = %v", err)
		}
		var syntax *codec.SyntaxError
		if _, err := conn.Encode("m", before, rawText(`{`), after); !errors.As(err, &syntax) && err == nil {
			t.Errorf("Encode() of no JSON = %v", err)
		}
		if _, err := conn.Encode("m", before, make(chan int), after); err == nil {
			t.Error("Encode() of a channel succeeds")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		e, _ = conn.Encode("m", before, 1, after)
		if err := e.Send(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Send() with an ended context = %v", err)
		}
		_ = conn.Close()
		e, _ = conn.Encode("m", before, 1, after)
		if err := e.Send(t.Context()); !errors.Is(err, peer.ErrClosed) {
			t.Errorf("Send() after the end = %v", err)
		}
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("left %q", got)
		}
	})
}

// A handler that returns why its connection ended has not failed, and the log does not
// say so.
func TestHandlerReturnsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		raw, conn := peertest.Against(t, log.attach(methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("giving up: %w", context.Cause(ctx))
		}}.options()))
		raw.Send(call(1, "m"))
		synctest.Wait()
		raw.Close(errors.New("cut"))
		<-conn.Done()
		if n := log.lines("handler failed"); n != 0 {
			t.Errorf("%d lines say that the handler failed", n)
		}
	})
}

type rawText string

func (r rawText) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// Control functions: one per method and token, which are told apart by type and value.
func TestControlTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		var got []string
		add := func(name string) func(*codec.Object) {
			return func(o *codec.Object) { got = append(got, name+string(o.Find("v"))) }
		}
		remove, err := conn.Control("m", "t", codec.NumberID(7), add("number "))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Control("m", "t", codec.StringID("7"), add("text ")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Control("m", "t", codec.NumberID(7), add("again ")); !errors.Is(err, peer.ErrToken) {
			t.Errorf("the same token = %v, want ErrToken", err)
		}
		for name, f := range map[string]func(){
			"another member": func() { _, _ = conn.Control("m", "u", codec.NumberID(8), add("")) },
			"no token":       func() { _, _ = conn.Control("x", "t", codec.ID{}, add("")) },
			"no member":      func() { _, _ = conn.Control("y", "", codec.NumberID(1), add("")) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				f()
			}()
		}
		for _, params := range []string{`{"t":7,"v":1}`, `{"v":2,"t":7.0}`, `{"v":3,"t":"7"}`, `{"t":8,"v":4}`, `{"t":null}`, `{"T":7}`, `[7]`} {
			raw.Send(`{"jsonrpc":"2.0","method":"m","params":` + params + `}`)
		}
		synctest.Wait()
		remove()
		raw.Send(`{"jsonrpc":"2.0","method":"m","params":{"t":7}}`)
		synctest.Wait()
		if want := []string{"number 1", "number 2", "text 3"}; !slices.Equal(got, want) || conn.Stats().Events[peer.UnknownToken] != 5 {
			t.Errorf("ran %q with %v, want %q and 5 unknown tokens", got, conn.Stats().Events, want)
		}
	})
}

// CancelBy tells the other end and goes on waiting: for its error, or for what it had.
// The context of the call still ends the waiting, and a second cancel does not leave.
func TestCancelBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		give, cancel := context.WithCancel(t.Context())
		whole, end := context.WithCancel(t.Context())
		var got []int
		seen := 0
		done := make(chan error, 1)
		start := func() {
			done <- conn.Call(whole, "m", nil, &got, peer.CancelBy(give), peer.OnProgress(func(peer.Progress) { seen++ }))
		}
		go start()
		raw.Receive()
		cancel()
		raw.Want(cancelOf(1))
		raw.Send(progressText(`"p1"`, `{"progress":1}`))
		synctest.Wait()
		if len(done) > 0 || seen != 1 {
			t.Errorf("the call has returned, or missed progress: %d seen", seen)
		}
		raw.Send(result(1, "[1,2]"))
		if err := <-done; err != nil || len(got) != 2 {
			t.Errorf("Call() = %v with %v, want the partial result", err, got)
		}
		go start() // give has ended before it began
		raw.Receive()
		raw.Want(cancelOf(2))
		raw.Send(cancelled(2))
		if err := <-done; !errors.Is(err, &peer.Error{Code: peer.Cancelled}) || errors.Is(err, context.Canceled) {
			t.Errorf("Call() = %v, want the other end's -32800", err)
		}
		go start()
		raw.Receive()
		raw.Want(cancelOf(3))
		end()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Call() = %v, want its context's end", err)
		}
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("told again with %q", got)
		}
	})
	for name, p := range map[string]*peer.Profile{"off": {Cancel: peer.Cancel{Off: true}}, "exempt": {Cancel: peer.Cancel{Exempt: []string{"m"}}}} {
		synctest.Test(t, func(t *testing.T) {
			raw, conn := peertest.Against(t, &peer.Options{Profile: p})
			give, cancel := context.WithCancel(t.Context())
			cancel()
			done := make(chan error, 1)
			go func() { done <- conn.Call(t.Context(), "m", nil, nil, peer.CancelBy(give)) }()
			raw.Want(call(1, "m"))
			raw.Send(result(1, "1"))
			if err := <-done; err != nil || len(raw.Waiting()) > 0 {
				t.Errorf("%s: Call() = %v, or a cancel left", name, err)
			}
		})
	}
}

// Handlers that stop since Options.BaseContext has ended are no failures.
func TestBaseContextEndsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		base, stop := context.WithCancel(t.Context())
		opts := log.attach(methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}.options())
		opts.BaseContext = base
		raw, _ := peertest.Against(t, opts)
		raw.Send(call(1, "m"))
		synctest.Wait()
		stop()
		raw.Want(failure(1, -32011, "shutting down"))
		synctest.Wait()
		if n := log.lines("handler failed"); n != 0 {
			t.Errorf("%d lines say that the handler failed", n)
		}
	})
}

// A nil Reporter does nothing, so that a handler need not ask whether it has one.
func TestNilReporter(t *testing.T) {
	progress, ok := peer.ProgressFrom(t.Context())
	if err := progress.Every(time.Second).Title("x").Report(peer.Progress{Done: 1}); ok || err != nil {
		t.Errorf("ProgressFrom() = %t, Report() = %v", ok, err)
	}
}

// Without params: {} or none at all.
func TestMethodWithoutParams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		empty, none := peer.Method[struct{}, int]("empty"), peer.Method[any, int]("none")
		empty.Handle(&reg, func(context.Context, struct{}) (int, error) { return 1, nil })
		none.Handle(&reg, func(_ context.Context, in any) (int, error) { return 2, nil })
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg})
		raw.Send(call(1, "empty"))
		raw.Want(result(1, "1"))
		raw.Send(call(2, "none"))
		raw.Want(result(2, "2"))
		go func() { _, _ = none.Call(t.Context(), conn, nil) }()
		raw.Want(call(1, "none"))
		go func() { _, _ = empty.Call(t.Context(), conn, struct{}{}) }()
		raw.Want(`{"jsonrpc":"2.0","id":2,"method":"empty","params":{}}`)
	})
}

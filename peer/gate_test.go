package peer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// gated serves an opening call that fails the first time, with a gate before it.
func gatedServer() *peer.Options {
	var reg peer.Registry
	var tries atomic.Int32
	reg.Handle("open", peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
		switch tries.Add(1) {
		case 1:
			return nil, &peer.Error{Code: 1, Message: "not yet"}
		case 2:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return 1, nil
	}))
	for _, name := range []string{"ping", "m", "close"} {
		reg.Handle(name, answers(1))
	}
	for _, name := range []string{"n", "exit"} {
		reg.HandleNotification(name, peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
			return nil, req.Conn.Notify(context.Background(), "ran "+name, nil)
		}))
	}
	return &peer.Options{Handler: &reg, Profile: &peer.Profile{Opening: peer.Opening{
		Call: "open", Code: -32002, Calls: []string{"ping"}, Notices: []string{"exit"}, Close: "close",
	}}}
}

// Before the opening call has succeeded, and after the closing one, only what the
// profile lists is taken.
func TestOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, gatedServer())
		shut := func(id int) string { return failure(id, -32002, "not initialized") }
		raw.Send(call(1, "m"))
		raw.Want(shut(1))
		raw.Send(call(2, "ping"))
		raw.Want(result(2, "1"))
		raw.Send(call(3, "close"))
		raw.Want(shut(3))
		raw.Send(notification("n"), notification("exit"))
		raw.Want(notification("ran exit"))
		raw.Send(call(4, "open")) // fails
		raw.Want(failure(4, 1, "not yet"))
		raw.Send(call(5, "m"))
		raw.Want(shut(5))
		raw.Send(call(6, "open")) // hangs
		synctest.Wait()
		raw.Send(call(7, "open"))
		raw.Want(failure(7, -32600, "already initialized"))
		raw.Send(call(8, "m"))
		raw.Want(shut(8))
		raw.Send(cancelOf(6))
		raw.Want(cancelled(6))
		raw.Send(call(9, "m"))
		raw.Want(shut(9))
		raw.Send("[" + call(10, "m") + "]")
		raw.Want("[" + shut(10) + "]")
		raw.Send("[" + call(11, "open") + "]")
		raw.Want("[" + result(11, "1") + "]")
		raw.Send(call(12, "m"))
		raw.Want(result(12, "1"))
		raw.Send(call(13, "open"))
		raw.Want(failure(13, -32600, "already initialized"))
		raw.Send(notification("n"))
		raw.Want(notification("ran n"))
		raw.Send(call(14, "close"))
		raw.Want(result(14, "1"))
		raw.Send(call(15, "m"))
		raw.Want(failure(15, -32600, "the session is closed"))
		raw.Send(notification("n"), notification("exit"))
		raw.Want(notification("ran exit"))
		synctest.Wait()
		if n := conn.Stats().Events[peer.RefusedNotification]; n != 2 {
			t.Errorf("%d notifications refused, want 2", n)
		}
	})
}

// An opening call that is refused for a bound leaves the session shut, not half open.
func TestOpeningOverLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"open": answers(1), "m": answers(1), "wait": func(ctx context.Context, _ *peer.Request) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}.options()
		opts.Profile = &peer.Profile{Opening: peer.Opening{Call: "open", Calls: []string{"wait"}}}
		opts.Limits.InFlight = 1
		raw, _ := peertest.Against(t, opts)
		raw.Send(call(1, "wait"))
		synctest.Wait()
		raw.Send(call(2, "open"))
		raw.Want(failure(2, -32010, "overloaded"))
		raw.Send(cancelOf(1))
		raw.Want(cancelled(1))
		raw.Send(call(3, "open"))
		raw.Want(result(3, "1"))
		raw.Send(call(4, "m"))
		raw.Want(result(4, "1"))
	})
}

// An end without the opening call has no session to guard: answers, calls and
// notifications come as ever.
func TestOpeningIsSomebodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"m": answers(1)}.options()
		opts.Profile = gatedServer().Profile
		raw, _ := peertest.Against(t, opts)
		raw.Send(call(1, "m"))
		raw.Want(result(1, "1"))
		raw.Send(call(2, "open"))
		raw.Want(failure(2, -32601, "method not found"))
	})
	// From end to end, the dialling end with handlers of its own.
	synctest.Test(t, func(t *testing.T) {
		client := methods{"ask": answers(7)}.options()
		server := gatedServer()
		client.Profile = server.Profile
		a, b := peertest.Pair(t, client, server)
		for opened := false; !opened; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			opened = a.Call(ctx, "open", nil, nil) == nil
			cancel()
		}
		var n int
		if err := a.Call(t.Context(), "m", nil, &n); err != nil || n != 1 {
			t.Errorf("Call() = %d, %v", n, err)
		}
		if err := b.Call(t.Context(), "ask", nil, &n); err != nil || n != 7 {
			t.Errorf("call back = %d, %v", n, err)
		}
	})
}

// Where only the dialling end calls, it refuses calls and the other makes none;
// notifications go both ways.
func TestOneWay(t *testing.T) {
	for _, accepts := range []bool{false, true} {
		t.Run(fmt.Sprint("accepts ", accepts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := methods{"m": answers(1)}.options()
				opts.Profile = &peer.Profile{OneWay: true, OneWayCode: -32601}
				opts.Accepts = accepts
				raw, conn := peertest.Against(t, opts)
				first, second := result(1, "1"), result(2, "1")
				if !accepts {
					no := "this end takes no calls"
					first, second = failure(1, -32601, no), failure(2, -32601, no)
				}
				raw.Send(call(1, "m"))
				raw.Want(first)
				raw.Send("[" + call(2, "m") + "]")
				raw.Want("[" + second + "]")
				if err := conn.Notify(t.Context(), "n", nil); err != nil {
					t.Errorf("Notify() = %v", err)
				}
				raw.Want(notification("n"))
				items := []peer.BatchItem{{Method: "x"}, {Method: "y", Notification: true}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := conn.Call(ctx, "x", nil, nil) // nobody answers
				if errors.Is(err, peer.ErrDirection) != accepts {
					t.Errorf("Call() = %v", err)
				}
				again, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = conn.Batch(again, items)
				if errors.Is(items[0].Err, peer.ErrDirection) != accepts || items[1].Err != nil {
					t.Errorf("Batch() = %v, %v", items[0].Err, items[1].Err)
				}
			})
		})
	}
}

// Where the other end makes no calls, a cancel from it ends one of ours.
func TestOneWayCancel(t *testing.T) {
	for _, accepts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			raw, conn := peertest.Against(t, &peer.Options{Accepts: accepts, Profile: &peer.Profile{OneWay: !accepts, Cancel: peer.Cancel{Reason: "reason"}}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- conn.Call(ctx, "listen", nil, nil) }()
			raw.Receive()
			raw.Send(cancelOf(`"1"`), cancelOf(2), `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1,"reason":"over"}}`)
			err := <-done
			var ended *peer.CancelError
			if errors.As(err, &ended) == accepts || !accepts && ended.Reason != "over" {
				t.Errorf("accepts %t: Call() = %v", accepts, err)
			}
			if n := conn.Stats().Events[peer.UnknownCancel]; n != 2 && !accepts || n != 3 && accepts {
				t.Errorf("accepts %t: %d unknown cancels", accepts, n)
			}
		})
	}
}

// Dial and Server know which end they are.
func TestOneWayOverSockets(t *testing.T) {
	var reg peer.Registry
	reg.Handle("m", peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
		if err := req.Conn.Call(ctx, "back", nil, nil); !errors.Is(err, peer.ErrDirection) {
			t.Errorf("calling back = %v, want ErrDirection", err)
		}
		return 1, nil
	}))
	p := &peer.Profile{OneWay: true}
	_, url := serve(t, &peer.Options{Handler: &reg, Profile: p})
	conn := dial(t, url, &peer.Options{Profile: p, Accepts: true})
	var n int
	if err := conn.Call(t.Context(), "m", nil, &n); err != nil || n != 1 {
		t.Errorf("Call() = %d, %v", n, err)
	}
}

// Calls without what the profile wants of params._meta are refused, and told what.
func TestRequiredMeta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"m": answers(1)}.options()
		opts.Profile = &peer.Profile{RequiredMeta: []string{"x/a", "b"}}
		raw, _ := peertest.Against(t, opts)
		with := func(params string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"m","params":` + params + `}`
		}
		lacks := func(name string) string {
			return `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: /_meta: lacks \"` + name +
				`\"","data":{"pointer":"/_meta","reason":"lacks \"` + name + `\""}}}`
		}
		raw.Send(call(1, "m"))
		raw.Want(lacks("x/a"))
		for _, params := range []string{`{}`, `[]`, `{"_meta":[]}`, `{"x/a":1,"b":1}`, `{"_meta":{"b":1}}`} {
			raw.Send(with(params))
			raw.Want(lacks("x/a"))
		}
		raw.Send(with(`{"_meta":{"x/a":null}}`))
		raw.Want(lacks("b"))
		raw.Send(with(`{"_meta":{"b":{},"x\/a":null}}`))
		raw.Want(result(1, "1"))
	})
}

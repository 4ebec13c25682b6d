package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// The time a caller has left goes along where the option says so, to the millisecond
// above, and not with notifications or arrays.
func TestDeadlineLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Deadlines: true})
		off, plain := peertest.Against(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Microsecond)
		defer cancel()
		for _, c := range []*peer.Conn{conn, plain} {
			go func() { _ = c.Call(ctx, "m", struct{}{}, nil) }()
			synctest.Wait()
			go func() { _ = c.Call(ctx, "m", []int{}, nil) }()
			synctest.Wait()
			_ = c.Notify(ctx, "n", nil)
			go func() { _ = c.Call(t.Context(), "m", nil, nil) }()
			synctest.Wait()
		}
		raw.Want(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.github.duetrpc/timeout":2}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"m","params":[]}`, notification("n"), call(3, "m"))
		off.Want(`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`,
			`{"jsonrpc":"2.0","id":2,"method":"m","params":[]}`, notification("n"), call(3, "m"))
	})
}

// A handler's context carries the deadline and ends with it; the answer says so. What
// is no time is none.
func TestDeadlineArrives(t *testing.T) {
	for _, test := range []struct {
		ms   string
		on   bool
		want time.Duration // 0: no deadline
	}{
		{"250", true, 250 * time.Millisecond},
		{"250", false, 0},
		{"1.5e1", true, 15 * time.Millisecond},
		{"1e400", true, 10 * 365 * 24 * time.Hour},
		{"9007199254740993000", true, 10 * 365 * 24 * time.Hour},
		{"-1", true, 0},
		{`"250"`, true, 0},
		{"null", true, 0},
		{"{}", true, 0},
	} {
		t.Run(test.ms, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var deadline time.Time
				var has bool
				opts := methods{"wait": func(ctx context.Context, _ *peer.Request) (any, error) {
					deadline, has = ctx.Deadline()
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(time.Second):
						return 1, nil
					}
				}}.options()
				opts.Deadlines = test.on
				raw, _ := peertest.Against(t, opts)
				raw.Send(`{"jsonrpc":"2.0","id":7,"method":"wait","params":{"_meta":{"io.github.duetrpc/timeout":` + test.ms + `}}}`)
				got := raw.Receive()
				if has != (test.want > 0) || has && deadline.Sub(began) != test.want {
					t.Errorf("deadline after %v, %t, want %v", deadline.Sub(began), has, test.want)
				}
				want := result(7, "1")
				if 0 < test.want && test.want < time.Second {
					want = cancelled(7)
					wantTook(t, "the call", began, test.want)
				}
				if got != want {
					t.Errorf("answered %s, want %s", got, want)
				}
			})
		})
	}
}

// A call whose time is over when its turn comes does not start; cause and error are
// those of a deadline, also where a cancel follows.
func TestDeadlineBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := methods{
			"slow": func(context.Context, *peer.Request) (any, error) { time.Sleep(time.Second); return nil, nil },
			"m":    func(context.Context, *peer.Request) (any, error) { t.Error("the call ran"); return 1, nil },
			"wait": func(ctx context.Context, _ *peer.Request) (any, error) {
				<-ctx.Done()
				time.Sleep(time.Second) // a cancel comes meanwhile
				if ctx.Err() != context.DeadlineExceeded || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("Err() = %v, cause %v, want those of the deadline", ctx.Err(), context.Cause(ctx))
				}
				return nil, context.Cause(ctx)
			},
		}.options()
		opts.Deadlines = true
		raw, conn := peertest.Against(t, opts)
		raw.Send(notification("slow"), `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.github.duetrpc/timeout":500}}}`)
		raw.Want(cancelled(1))
		raw.Send(`{"jsonrpc":"2.0","id":2,"method":"wait","params":{"_meta":{"io.github.duetrpc/timeout":500}}}`)
		time.Sleep(time.Second)
		raw.Send(cancelOf(2))
		raw.Want(cancelled(2))
		// A deadline of the handler's own is its own affair.
		if n := conn.Stats().Events[peer.UnknownCancel]; n != 0 {
			t.Errorf("%d unknown cancels", n)
		}
	})
}

// From end to end: both have the same deadline, and the caller's own fires.
func TestDeadlineEndToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		left := make(chan time.Duration, 1)
		wait := peer.Method[struct{}, int]("wait")
		wait.Handle(&reg, func(ctx context.Context, _ struct{}) (int, error) {
			deadline, _ := ctx.Deadline()
			left <- time.Until(deadline)
			<-ctx.Done()
			return 0, ctx.Err()
		})
		a, _ := peertest.Pair(t, &peer.Options{Deadlines: true}, &peer.Options{Handler: &reg, Deadlines: true})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := wait.Call(ctx, a, struct{}{}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, &peer.Error{Code: peer.Cancelled}) {
			t.Errorf("Call() = %v, want its deadline", err)
		}
		if got := <-left; got != 3*time.Second {
			t.Errorf("the handler had %v left, want 3s", got)
		}
	})
}

// Where both clocks end a call at once, the caller's error is that of its own.
func TestDeadlineOfBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			done := make(chan error, 1)
			go func() { done <- conn.Call(ctx, "m", nil, nil) }()
			var id struct{ ID int }
			_ = json.Unmarshal([]byte(raw.Receive()), &id)
			time.Sleep(time.Second)
			raw.Send(cancelled(id.ID))
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Call() = %v, want its deadline", err)
			}
			cancel()
			synctest.Wait()
			raw.Waiting()
		}
	})
}

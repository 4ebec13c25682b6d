package peer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

type contextKey struct{}

// TestContextEnds: a handler's context ends in each way with its cause, and so do
// contexts made of it before or after, whether or not it was asked for Done first.
func TestContextEnds(t *testing.T) {
	gone := errors.New("base is gone")
	var cancelError *peer.CancelError
	for _, c := range []struct {
		name string
		end  func(raw *peertest.Raw, conn *peer.Conn, base context.CancelCauseFunc, leave func())
		want func(cause error) bool
	}{
		{"return", func(_ *peertest.Raw, _ *peer.Conn, _ context.CancelCauseFunc, leave func()) { leave() },
			func(err error) bool {
				return err != nil && !errors.As(err, &cancelError) && !errors.Is(err, peer.ErrClosed)
			}},
		{"cancel", func(raw *peertest.Raw, _ *peer.Conn, _ context.CancelCauseFunc, _ func()) {
			raw.Send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7,"reason":"tired"}}`)
		}, func(err error) bool { return errors.As(err, &cancelError) && cancelError.Reason == "tired" }},
		{"close", func(_ *peertest.Raw, conn *peer.Conn, _ context.CancelCauseFunc, _ func()) { _ = conn.Close() },
			func(err error) bool { return errors.Is(err, peer.ErrClosed) }},
		{"base", func(_ *peertest.Raw, _ *peer.Conn, base context.CancelCauseFunc, _ func()) { base(gone) },
			func(err error) bool { return errors.Is(err, gone) }},
	} {
		for _, asked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asked %t", c.name, asked), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					base, cancelBase := context.WithCancelCause(context.WithValue(t.Context(), contextKey{}, "value"))
					defer cancelBase(nil)
					got, left := make(chan context.Context, 1), make(chan struct{})
					leave := sync.OnceFunc(func() { close(left) })
					opts := methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
						got <- ctx
						<-left
						return nil, nil
					}}.options()
					opts.BaseContext = base
					opts.Profile = &peer.Profile{Cancel: peer.Cancel{Reason: "reason"}}
					raw, conn := peertest.Against(t, opts)
					raw.Send(call(7, "m"))
					ctx := <-got
					checks := map[string]context.Context{"the context": ctx}
					ran := make(chan struct{})
					if asked {
						if v, _ := ctx.Value(contextKey{}).(string); v != "value" {
							t.Errorf("Value = %q, want that of BaseContext", v)
						}
						child, cancel := context.WithCancel(ctx)
						defer cancel()
						timed, cancel := context.WithTimeout(ctx, time.Hour)
						defer cancel()
						checks["a WithCancel of before"], checks["a WithTimeout of before"] = child, timed
						context.AfterFunc(ctx, func() { close(ran) })
					}
					for what, ctx := range checks {
						if ctx.Err() != nil || context.Cause(ctx) != nil && asked {
							t.Errorf("%s: Err, Cause = %v, %v before its end", what, ctx.Err(), context.Cause(ctx))
						}
					}
					c.end(raw, conn, cancelBase, leave)
					synctest.Wait()
					if err := ctx.Err(); err != context.Canceled {
						t.Errorf("Err() = %v after its end, want Canceled", err)
					}
					if !asked {
						context.AfterFunc(ctx, func() { close(ran) })
					}
					child, cancel := context.WithCancel(ctx)
					defer cancel()
					checks["a WithCancel of after"] = child
					synctest.Wait()
					for what, ctx := range checks {
						select {
						case <-ctx.Done():
						default:
							t.Errorf("%s: Done is not closed", what)
						}
						if err, cause := ctx.Err(), context.Cause(ctx); err != context.Canceled || !c.want(cause) {
							t.Errorf("%s: Err, Cause = %v, %v", what, err, cause)
						}
					}
					select {
					case <-ran:
					default:
						t.Error("AfterFunc did not run")
					}
					// The first cause stays.
					before := context.Cause(ctx)
					leave()
					_ = conn.Close()
					synctest.Wait()
					if after := context.Cause(ctx); after != before {
						t.Errorf("Cause = %v after another end, was %v", after, before)
					}
				})
			})
		}
	}
}

// TestContextDeadline: the deadline of BaseContext is a handler's too.
func TestContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		want, _ := base.Deadline()
		opts := methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			if got, ok := ctx.Deadline(); !ok || got != want {
				t.Errorf("Deadline() = %v, %t, want that of BaseContext", got, ok)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}.options()
		opts.BaseContext = base
		left, right := peertest.Pair(t, nil, opts)
		began := time.Now()
		if err := left.Call(t.Context(), "m", nil, nil); err == nil {
			t.Error("Call = nil, want the handler's error")
		}
		wantTook(t, "the handler", began, time.Minute)
		if err := context.Cause(right.Context()); err != context.DeadlineExceeded {
			t.Errorf("Cause = %v, want DeadlineExceeded", err)
		}
	})
}

// TestContextKept: a context that was kept after its handler returned tells of its
// own request, and does nothing to those that have its memory now.
func TestContextKept(t *testing.T) {
	type kept struct {
		ctx  context.Context
		conn *peer.Conn
	}
	var mu sync.Mutex
	var all []kept
	r := &peer.Registry{}
	m := peer.Method[[]int, []int]("m")
	m.Handle(r, func(ctx context.Context, v []int) ([]int, error) {
		conn, _ := peer.ConnFrom(ctx)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, kept{ctx, conn})
		return v, nil
	})
	n := peer.Notification[[]int]("n")
	var order []int
	n.Handle(r, func(ctx context.Context, v []int) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, v[0])
		all = append(all, kept{ctx, nil})
		return nil
	})
	left, right := peertest.Pair(t, &peer.Options{Handler: peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return 1, nil })},
		&peer.Options{Handler: r})
	next := func(i int) (k kept) {
		mu.Lock()
		defer mu.Unlock()
		return all[i*31%len(all)]
	}
	const calls = 200
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			for i := range calls {
				got, err := m.Call(t.Context(), left, []int{i})
				if err != nil || got[0] != i {
					t.Errorf("Call(%d) = %v, %v", i, got, err)
				}
			}
		})
	}
	if _, err := m.Call(t.Context(), left, []int{0}); err != nil {
		t.Fatal(err)
	}
	callers.Go(func() {
		for i := range calls {
			if err := n.Notify(t.Context(), left, []int{i}); err != nil {
				t.Errorf("Notify(%d) = %v", i, err)
			}
		}
	})
	callers.Go(func() {
		for i := range calls {
			k := next(i)
			peer.Async(k.ctx)
			if c, ok := peer.ConnFrom(k.ctx); !ok || c != right {
				t.Errorf("ConnFrom = %v, %t", c, ok)
			}
			caller, _ := peer.CallerFrom(k.ctx)
			if i%4 == 0 {
				// It may still run, or be over: either way nothing happens to others.
				_ = caller.Call(k.ctx, "back", nil, nil)
				_ = caller.Notify(context.WithoutCancel(k.ctx), "back", nil)
			}
			if k.conn != nil && k.ctx.Value(contextKey{}) != nil {
				t.Error("Value of an unknown key is not nil")
			}
		}
	})
	callers.Wait()
	eventually(t, "all notifications ran", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == calls })
	for i, got := range order {
		if got != i {
			t.Fatalf("notification %d ran where %d was next", got, i)
		}
	}
	eventually(t, "all contexts have ended", func() bool {
		for _, k := range all {
			if k.ctx.Err() != context.Canceled || context.Cause(k.ctx) == nil {
				return false
			}
		}
		return true
	})
	ctx := context.WithoutCancel(all[0].ctx)
	var back int
	if err := right.Call(ctx, "back", nil, &back); err != nil || back != 1 {
		t.Errorf("Call with what is left of a context = %d, %v", back, err)
	}
	if s := right.Stats(); s.InFlight != 0 || s.Notifications != 0 || s.Pending != 0 || len(s.Events) != 0 {
		t.Errorf("Stats() = %+v, want nothing held and nothing refused", s)
	}
}

// TestContextConcurrent: its methods may be called by many while it ends.
func TestContextConcurrent(t *testing.T) {
	for range 50 {
		var users sync.WaitGroup
		left, _ := peertest.Pair(t, nil, methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			for range 4 {
				users.Go(func() {
					child, cancel := context.WithCancel(ctx)
					defer cancel()
					_, _ = ctx.Deadline()
					if v := ctx.Value(contextKey{}); v != nil {
						t.Errorf("Value = %v", v)
					}
					<-child.Done()
					if ctx.Err() != context.Canceled || context.Cause(ctx) != context.Cause(child) {
						t.Errorf("Err, Cause = %v, %v, of the child %v", ctx.Err(), context.Cause(ctx), context.Cause(child))
					}
				})
			}
			return nil, nil
		}}.options())
		if err := left.Call(t.Context(), "m", nil, nil); err != nil {
			t.Errorf("Call = %v", err)
		}
		users.Wait()
		_ = left.Close()
	}
}

// TestContextFirstCause: a context that nobody asked until its handler had
// returned tells what ended it first.
func TestContextFirstCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		leave := make(chan struct{})
		raw, _ := peertest.Against(t, methods{"m": func(handlers context.Context, _ *peer.Request) (any, error) {
			ctx = handlers
			<-leave
			return nil, nil
		}}.options())
		raw.Send(call(7, "m"))
		synctest.Wait() // one cancelled before it starts never does
		raw.Send(cancelOf(7))
		synctest.Wait()
		close(leave)
		synctest.Wait()
		var cause *peer.CancelError
		if err := context.Cause(ctx); !errors.As(err, &cause) {
			t.Errorf("Cause = %v, want that of the cancellation", err)
		}
	})
}

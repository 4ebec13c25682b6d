package peer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

// stuckFirst is an exchange whose first connection takes no bytes, and a handler that
// counts.
func stuckFirst(t *testing.T) (x *exchange, ran *atomic.Int32) {
	ran = new(atomic.Int32)
	x = &exchange{t: t, opts: methods{
		"m":     func(context.Context, *peer.Request) (any, error) { return ran.Add(1), nil },
		"error": func(context.Context, *peer.Request) (any, error) { ran.Add(1); return nil, &peer.Error{Code: 7} },
	}.options()}
	x.wrap = func(n int, tr peer.Transport) (peer.Transport, error) {
		if n == 1 {
			tr, _ = gated(tr)
		}
		return tr, nil
	}
	return x, ran
}

// A call that was not sent is made again on the next connection, one that may have been
// sent is not, unless it is idempotent.
func TestClientCallsAgain(t *testing.T) {
	for _, test := range []struct {
		name  string
		opts  []peer.CallOption
		again bool // the one that may have been sent
	}{
		{"plain", nil, false},
		{"idempotent", []peer.CallOption{peer.Idempotent()}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, ran := stuckFirst(t)
				c := x.client(peer.ClientOptions{})
				maybe, not := make(chan error, 1), make(chan error, 1)
				go func() { maybe <- c.Call(t.Context(), "m", nil, nil, test.opts...) }()
				synctest.Wait() // it is in the Transport's Write
				var n int32
				go func() { not <- c.Call(t.Context(), "m", nil, &n, test.opts...) }()
				synctest.Wait() // behind it
				x.last().Close()
				err := <-maybe
				if test.again {
					if err != nil {
						t.Errorf("Call = %v, want nil from the second connection", err)
					}
				} else if wantSent(t, err, pending.MaybeSent); errors.Is(err, peer.ErrClosed) {
					t.Errorf("Call = %v, want how the other end closed", err)
				}
				if err := <-not; err != nil || n == 0 {
					t.Errorf("the call that was not sent = %v, %d", err, n)
				}
				if n, want := ran.Load(), map[bool]int32{false: 1, true: 2}[test.again]; n != want {
					t.Errorf("%d calls ran, want %d", n, want)
				}
			})
		})
	}
}

// What is not the end of the connection is returned as it is, idempotent or not.
func TestClientCallsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, ran := stuckFirst(t)
		x.wrap = nil
		opts := peer.ClientOptions{}
		opts.Limits.MessageBytes = 1 << 10
		c := x.client(opts)
		if err := c.Call(t.Context(), "error", nil, nil, peer.Idempotent()); !errors.Is(err, &peer.Error{Code: 7}) {
			t.Errorf("Call = %v, want the other end's error", err)
		}
		if n := ran.Load(); n != 1 {
			t.Errorf("a call that failed ran %d times", n)
		}
		err := c.Call(t.Context(), "m", []string{string(make([]byte, 2<<10))}, nil, peer.Idempotent())
		wantLimit(t, "Call", err, "MessageBytes")
		if err := c.Call(t.Context(), "m", 1, nil, peer.Idempotent()); !errors.Is(err, peer.ErrParams) {
			t.Errorf("Call = %v, want ErrParams", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Call(ctx, "m", nil, nil, peer.Idempotent()); !errors.Is(err, context.Canceled) {
			t.Errorf("Call = %v, want the end of the context", err)
		}
		if n := len(x.dialled()); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
	})
}

// A call that ran into the end of one connection, and of its context while it waited for
// the next, may have been sent, and says both.
func TestClientIdempotentGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := stuckFirst(t)
		x.hold = func(_ context.Context, n int) error {
			if n > 1 {
				return errRefused
			}
			return nil
		}
		c := x.client(peer.ClientOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(time.Second, func() { _ = x.last().Close() })
		err := c.Call(ctx, "m", nil, nil, peer.Idempotent(), peer.Note("n"))
		wantSent(t, err, pending.MaybeSent)
		var closed *peer.CloseError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errRefused) || !errors.As(err, &closed) {
			t.Errorf("Call = %v, want the end of the connection, of the context, and why there was no other", err)
		}
	})
}

// An own Close of the connection is not made good for; the Client makes another one.
func TestClientOwnCloseOfConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, ran := stuckFirst(t)
		c := x.client(peer.ClientOptions{GiveUp: func(err error) bool { return true }})
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { failed <- c.Call(t.Context(), "m", nil, nil, peer.Idempotent()) }()
		synctest.Wait()
		_ = conn.Close()
		if err := <-failed; !errors.Is(err, peer.ErrClosed) {
			t.Errorf("Call = %v, want ErrClosed", err)
		}
		if err := c.Call(t.Context(), "m", nil, nil); err != nil || ran.Load() != 1 {
			t.Errorf("the next call = %v, and %d ran", err, ran.Load())
		}
	})
}

// A notification that found the connection ended, or no room until then, goes out on the
// next; one that was queued does not.
func TestClientNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, ran := stuckFirst(t)
		opts := peer.ClientOptions{}
		opts.Limits.QueueBytes = 4 << 10
		c := x.client(opts)
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		big := []string{string(make([]byte, 100))} // six times as long as JSON
		waits, queued := make(chan error, 1), 0
		go func() {
			for range 10 {
				if err := c.Notify(t.Context(), "m", big); err != nil {
					waits <- err
					return
				}
				queued++
			}
			waits <- nil
		}()
		synctest.Wait()
		before := queued
		if before == 0 || before == 10 {
			t.Fatalf("%d of 10 are queued", before)
		}
		x.last().Close()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := int(ran.Load()); n != 10-before {
			t.Errorf("%d arrived, want the %d that were not queued before", n, 10-before)
		}
	})
}

// Shutdown finishes what runs, has what waits for a connection fail, and dials no more.
func TestClientShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"nap": naps(time.Second)}.options()}
		var l states
		c := x.client(peer.ClientOptions{OnState: l.add})
		rested := make(chan error, 1)
		go func() { rested <- c.Call(t.Context(), "nap", nil, nil) }()
		synctest.Wait()
		began := time.Now()
		down := make(chan error, 2)
		for range 2 {
			go func() { down <- c.Shutdown(t.Context()) }()
		}
		synctest.Wait()
		if err := c.Call(t.Context(), "nap", nil, nil); !errors.Is(err, peer.ErrShutdown) {
			t.Errorf("Call while it shuts down = %v, want ErrShutdown", err)
		}
		if err := errors.Join(<-rested, <-down, <-down, c.Err(), c.Shutdown(t.Context())); err != nil {
			t.Error(err)
		}
		wantTook(t, "Shutdown", began, time.Second)
		err := c.Call(t.Context(), "nap", nil, nil)
		if wantSent(t, err, pending.NotSent); !errors.Is(err, peer.ErrShutdown) {
			t.Errorf("Call after it = %v, want ErrShutdown", err)
		}
		if !clientDone(c) || len(x.dialled()) != 1 {
			t.Errorf("the client is not done, or has dialled %d times", len(x.dialled()))
		}
		wantPhases(t, &l, peer.Dialling, peer.Connected, peer.Ended)
	})
}

func TestClientShutdownUnconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, hold: func(context.Context, int) error { return errRefused }}
		c := x.client(peer.ClientOptions{})
		waits := make(chan error, 1)
		go func() { waits <- c.Call(t.Context(), "m", nil, nil) }()
		synctest.Wait()
		if err := c.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v, want nil", err)
		}
		err := <-waits
		if wantSent(t, err, pending.NotSent); !errors.Is(err, peer.ErrShutdown) {
			t.Errorf("Call = %v, want ErrShutdown", err)
		}
	})
}

// A Shutdown whose context ends closes at once; one whose connection breaks tells it, and
// nothing is dialled.
func TestClientShutdownCutShort(t *testing.T) {
	for name, test := range map[string]struct {
		cut func(x *exchange)
		is  func(error) bool
	}{
		"context": {func(*exchange) {}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"break":   {func(x *exchange) { x.last().Close() }, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &exchange{t: t, opts: methods{"hang": hangs}.options()}
				c := x.client(peer.ClientOptions{})
				failed := make(chan error, 1)
				go func() { failed <- c.Call(t.Context(), "hang", nil, nil, peer.Idempotent()) }()
				synctest.Wait()
				time.AfterFunc(time.Second, func() { test.cut(x) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := c.Shutdown(ctx); !test.is(err) {
					t.Errorf("Shutdown = %v", err)
				}
				if err := <-failed; err == nil {
					t.Error("a call that hung succeeded")
				} else {
					wantSent(t, err, pending.Sent)
				}
				if !clientDone(c) || len(x.dialled()) != 1 {
					t.Errorf("the client is not done, or has dialled %d times", len(x.dialled()))
				}
			})
		})
	}
}

// A connection that breaks while Shutdown waits for a handler of this end is not replaced.
func TestClientShutdownDialsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t}
		c := x.client(peer.ClientOptions{Options: *methods{"deaf": naps(time.Hour)}.options()})
		synctest.Wait()
		go func() { _ = x.last().Call(t.Context(), "deaf", nil, nil) }()
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- c.Shutdown(t.Context()) }()
		synctest.Wait()
		_ = x.last().Close()
		if err := <-down; err != nil {
			t.Errorf("Shutdown = %v, want nil after an orderly end", err)
		}
		if n := len(x.dialled()); n != 1 {
			t.Errorf("%d dials", n)
		}
	})
}

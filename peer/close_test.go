package peer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
)

// isDone reports whether c has come to its end.
func isDone(c *peer.Conn) bool {
	synctest.Wait()
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// wantEnded fails t unless every method of c says that it ended with want.
func wantEnded(t *testing.T, c *peer.Conn, want error) {
	t.Helper()
	items := []peer.BatchItem{{Method: "x"}, {Method: "y", Notification: true}}
	err := c.Call(t.Context(), "x", nil, nil)
	wantSent(t, err, pending.NotSent)
	for what, err := range map[string]error{
		"Call": err, "Notify": c.Notify(t.Context(), "x", nil), "Batch": c.Batch(t.Context(), items),
		"first item": items[0].Err, "second item": items[1].Err,
	} {
		if !errors.Is(err, want) {
			t.Errorf("%s after the end = %v, want %v", what, err, want)
		}
	}
	if n := c.Stats().Pending; n != 0 {
		t.Errorf("Pending = %d after the end, want 0", n)
	}
}

// Close returns at once while a handler hangs that does not look at its
// context; Done waits for it.
func TestCloseWhileHandlerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"deaf": naps(time.Minute)}.options())
		raw.Send(call(7, "deaf"))
		synctest.Wait()
		began := time.Now()
		if err := conn.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
		wantTook(t, "Close", began, 0)
		if isDone(conn) {
			t.Error("Done is closed while a handler runs")
		}
		wantEnded(t, conn, peer.ErrClosed)
		<-conn.Done()
		wantTook(t, "Done", began, time.Minute)
		if err := conn.Err(); err != nil {
			t.Errorf("Err = %v after Close, want nil", err)
		}
		wantEnded(t, conn, peer.ErrClosed)
		if extra := raw.Waiting(); len(extra) > 0 {
			t.Errorf("left after Close: %q", extra)
		}
	})
}

// Close waited for the handler it was called from.
func TestCloseFromHandler(t *testing.T) {
	for _, kind := range []string{call(7, "close"), notification("close")} {
		synctest.Test(t, func(t *testing.T) {
			raw, conn := peertest.Against(t, methods{"close": func(ctx context.Context, req *peer.Request) (any, error) {
				_, _ = req.Conn.Close(), req.Conn.Close()
				if cause := context.Cause(ctx); !errors.Is(cause, peer.ErrClosed) {
					t.Errorf("cause in the handler = %v, want ErrClosed", cause)
				}
				return nil, req.Conn.Call(context.WithoutCancel(ctx), "x", nil, nil)
			}}.options())
			raw.Send(kind)
			if err := raw.Ended(); !errors.Is(err, io.EOF) {
				t.Errorf("the other end saw %v, want an orderly end", err)
			}
			if !isDone(conn) {
				t.Error("Done is not closed")
			}
		})
	}
}

func TestCloseConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, right := peertest.Pair(t, nil, nil)
		var closers sync.WaitGroup
		for range 20 {
			for _, conn := range []*peer.Conn{left, right} {
				closers.Go(func() {
					if err := conn.Close(); err != nil {
						t.Errorf("Close = %v, want nil", err)
					}
					<-conn.Done()
				})
			}
		}
		closers.Wait()
		if err := errors.Join(left.Err(), right.Err()); err != nil {
			t.Errorf("Err = %v, want nil at both ends", err)
		}
	})
}

// coded is a cause that tells a close code.
type coded struct{}

func (coded) Error() string                 { return "coded" }
func (coded) WebSocketClose() (int, string) { return 4321, "first" }

// The first cause is what Err, pending calls, later calls and handlers see, also
// when others follow.
func TestFirstCause(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(raw *peertest.Raw, conn *peer.Conn)
		is   func(error) bool
		err  bool // Err tells it
	}{
		{"Close", func(_ *peertest.Raw, c *peer.Conn) { _ = c.Close() },
			func(err error) bool { return errors.Is(err, peer.ErrClosed) }, false},
		{"orderly end of the other end", func(raw *peertest.Raw, _ *peer.Conn) { raw.Close(nil) },
			func(err error) bool { return errors.Is(err, io.EOF) }, false},
		{"broken end of the other end", func(raw *peertest.Raw, _ *peer.Conn) { raw.Close(coded{}) },
			func(err error) bool {
				var closed *peer.CloseError
				return errors.As(err, &closed) && closed.Code == 4321
			}, true},
		{"over a bound", func(raw *peertest.Raw, _ *peer.Conn) { raw.Send(strings.Repeat(" ", 2<<10)) },
			func(err error) bool {
				var limit *peer.LimitError
				return errors.As(err, &limit) && limit.What == "MessageBytes"
			}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				causes := make(chan error, 3)
				opts := methods{"hang": func(ctx context.Context, _ *peer.Request) (any, error) {
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return nil, nil
				}}.options()
				opts.Limits.MessageBytes = 1 << 10
				raw, conn := peertest.Against(t, opts)
				raw.Send(call(7, "hang"), notification("hang"))
				go func() { causes <- conn.Call(t.Context(), "x", nil, nil) }()
				synctest.Wait()
				test.end(raw, conn)
				synctest.Wait()
				raw.Close(errors.New("second"))
				_ = conn.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := conn.Shutdown(ctx); err != nil {
					t.Errorf("Shutdown after the end = %v, want nil", err)
				}
				for range 3 {
					if err := <-causes; !test.is(err) {
						t.Errorf("a pending call or a handler ended with %v, want the first cause", err)
					}
				}
				if err := conn.Call(t.Context(), "x", nil, nil); !test.is(err) {
					t.Errorf("Call = %v, want the first cause", err)
				}
				if err := conn.Err(); test.err != (err != nil) || test.err && !test.is(err) {
					t.Errorf("Err = %v, want the first cause: %t", err, test.err)
				}
			})
		})
	}
}

// What the other end sent before it closed in order is still handled; what it
// waits for is not.
func TestCloseByOtherEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran, calls atomic.Int32
		raw, conn := peertest.Against(t, methods{
			"nap": func(context.Context, *peer.Request) (any, error) {
				time.Sleep(time.Millisecond)
				ran.Add(1)
				return nil, nil
			},
			"call": func(context.Context, *peer.Request) (any, error) { calls.Add(1); return nil, nil },
		}.options())
		done := make(chan error, 1)
		go func() { done <- conn.Call(t.Context(), "x", nil, nil) }()
		raw.Want(call(1, "x"))
		for range 50 {
			raw.Send(notification("nap"))
		}
		raw.Send(call(7, "call"))
		raw.Close(nil)
		err := <-done
		wantSent(t, err, pending.Sent)
		if !errors.Is(err, io.EOF) {
			t.Errorf("the pending call = %v, want the end of the connection", err)
		}
		<-conn.Done()
		if ran.Load() != 50 || calls.Load() != 0 {
			t.Errorf("%d notifications and %d held calls ran, want 50 and 0", ran.Load(), calls.Load())
		}
		if err := conn.Err(); err != nil {
			t.Errorf("Err = %v, want nil", err)
		}
		if s := conn.Stats(); s.Notifications != 0 {
			t.Errorf("Notifications = %d, want 0", s.Notifications)
		}
	})
}

// What never ran is given back too.
func TestCloseFreesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"nap": naps(time.Second), "now": answers(1)}.options())
		raw.Send(notification("nap"), notification("nap"), call(7, "now"))
		synctest.Wait()
		_ = conn.Close()
		<-conn.Done()
		if s := conn.Stats(); s.InFlight != 0 || s.Notifications != 0 {
			t.Errorf("InFlight, Notifications = %d, %d after the end, want 0, 0", s.InFlight, s.Notifications)
		}
	})
}

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		raw := peertest.NewRaw(t, a)
		b, open := gated(b)
		conn := peertest.Start(t, b, methods{
			"nap": naps(2 * time.Second),
			"ask": func(ctx context.Context, req *peer.Request) (any, error) {
				time.Sleep(time.Second)
				return 1, req.Conn.Call(ctx, "question", nil, nil) // while it shuts down
			},
			"now": answers(1),
		}.options())
		time.AfterFunc(500*time.Millisecond, open)
		own := make(chan error, 1)
		go func() { own <- conn.Call(t.Context(), "own", nil, nil) }()
		synctest.Wait()
		if err := conn.Notify(t.Context(), "queued", nil); err != nil {
			t.Fatal(err)
		}
		raw.Send(call(1, "nap"), call(2, "ask"))
		synctest.Wait()
		began := time.Now()
		shut := make(chan error, 2)
		for range 2 { // the second waits with the first
			go func() { shut <- conn.Shutdown(t.Context()) }()
		}
		synctest.Wait()
		late := conn.Call(t.Context(), "late", nil, nil)
		if !errors.Is(late, peer.ErrShutdown) {
			t.Errorf("Call while shutting down = %v, want ErrShutdown", late)
		}
		if err := conn.Notify(t.Context(), "late", nil); !errors.Is(err, peer.ErrShutdown) {
			t.Errorf("Notify while shutting down = %v, want ErrShutdown", err)
		}
		raw.Want(call(1, "own"), notification("queued"))
		raw.Send(call(3, "now")) // the own call still waits: this may be part of answering it
		raw.Want(result(3, "1"))
		raw.Send(result(1, "0"))
		if err := <-own; err != nil {
			t.Errorf("the own call = %v, want nil", err)
		}
		raw.Send(call(4, "now")) // nothing of its own waits any more
		raw.Want(failure(4, -32011, "shutting down"), call(2, "question"))
		raw.Send(result(2, "0"))
		raw.Want(result(2, "1"), result(1, `"rested"`))
		for range 2 {
			if err := <-shut; err != nil {
				t.Errorf("Shutdown = %v, want nil", err)
			}
		}
		wantTook(t, "Shutdown", began, 2*time.Second)
		_ = raw.Ended()
		if err := conn.Shutdown(t.Context()); err != nil || !isDone(conn) || conn.Err() != nil {
			t.Errorf("Shutdown again = %v, Err = %v, want nil and nil", err, conn.Err())
		}
		wantEnded(t, conn, peer.ErrShutdown)
	})
}

// Both ends see a Shutdown as an orderly end.
func TestShutdownIsOrderly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, right := peertest.Pair(t, nil, nil)
		err := left.Shutdown(t.Context())
		<-right.Done()
		if err := errors.Join(err, left.Err(), right.Err()); err != nil {
			t.Errorf("Shutdown, Err here, Err there = %v, want nil", err)
		}
	})
}

// What Shutdown waits for, one at a time: with that left undone its deadline
// ends the connection.
func TestShutdownDeadline(t *testing.T) {
	for _, test := range []struct {
		name  string
		begin func(raw *peertest.Raw, conn *peer.Conn)
		open  bool // the transport writes
	}{
		{"a call runs", func(raw *peertest.Raw, _ *peer.Conn) { raw.Send(call(7, "hang")) }, true},
		{"a notification runs", func(raw *peertest.Raw, _ *peer.Conn) { raw.Send(notification("hang")) }, true},
		{"an own call waits", func(raw *peertest.Raw, c *peer.Conn) {
			go func() { _ = c.Call(context.Background(), "x", nil, nil) }()
		}, true},
		{"bytes are queued", func(_ *peertest.Raw, c *peer.Conn) { _ = c.Notify(context.Background(), "x", nil) }, false},
		{"an answer is queued", func(raw *peertest.Raw, _ *peer.Conn) { raw.Send(call(7, "now")) }, false},
		{"an answer of a batch is queued", func(raw *peertest.Raw, _ *peer.Conn) { raw.Send("[" + call(7, "now") + "]") }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := peer.Pipe()
				raw := peertest.NewRaw(t, a)
				if !test.open {
					b, _ = gated(b)
				}
				conn := peertest.Start(t, b, methods{"hang": hangs, "now": answers(1)}.options())
				test.begin(raw, conn)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				began := time.Now()
				if err := conn.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown = %v, want context.DeadlineExceeded", err)
				}
				wantTook(t, "Shutdown", began, 3*time.Second)
				if !isDone(conn) {
					t.Error("the connection goes on after the deadline")
				}
			})
		})
	}
}

// Sending on a connection that closes while answers come in ended in a panic:
// send on a closed channel.
func TestCloseRacesAnswers(t *testing.T) {
	for range 100 {
		opts := methods{"now": answers(1)}.options()
		left, right := peertest.Pair(t, opts, opts)
		var callers sync.WaitGroup
		for _, conn := range []*peer.Conn{left, right, left, right} {
			callers.Go(func() {
				for {
					if err := conn.Call(context.Background(), "now", nil, nil); err != nil {
						if !errors.Is(err, peer.ErrClosed) && !errors.Is(err, io.EOF) {
							t.Errorf("Call = %v, want ErrClosed here and io.EOF there", err)
						}
						return
					}
					if err := conn.Notify(context.Background(), "now", nil); err != nil {
						return
					}
				}
			})
		}
		callers.Go(func() { _ = left.Call(context.Background(), "now", nil, nil); _ = left.Close() })
		callers.Wait()
		<-left.Done()
		<-right.Done()
		if n := left.Stats().Pending + right.Stats().Pending; n != 0 {
			t.Fatalf("Pending = %d after the end, want 0", n)
		}
	}
}

func TestNils(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opts := range []*peer.Options{nil, {}} {
			raw, _ := peertest.Against(t, opts)
			raw.Send(call(7, "x"), notification("x"))
			raw.Want(failure(7, -32601, "method not found"))
		}
	})
	for _, h := range []peer.Handler{peer.HandlerFunc(nil), (*peer.Registry)(nil)} {
		var bad *peer.OptionError
		if err := (&peer.Options{Handler: h}).Validate(); !errors.As(err, &bad) || bad.Field != "Handler" {
			t.Errorf("Validate() of a nil %T = %v, want an OptionError for Handler", h, err)
		}
	}
	defer func() {
		if v, ok := recover().(string); !ok || v != "peer: New needs a Transport" {
			t.Errorf("New(nil) panicked with %v, want words that say what is missing", v)
		}
	}()
	peer.New(nil, nil)
}

package peer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// methods are the handlers of one end, by name.
type methods map[string]peer.HandlerFunc

// options serves m.
func (m methods) options() *peer.Options {
	var reg peer.Registry
	for name, f := range m {
		reg.Handle(name, f)
	}
	return &peer.Options{Handler: &reg}
}

// naps is a handler that takes d of virtual time.
func naps(d time.Duration) peer.HandlerFunc {
	return func(context.Context, *peer.Request) (any, error) {
		time.Sleep(d)
		return "rested", nil
	}
}

// hangs is a handler that returns when its context ends, with the cause.
func hangs(ctx context.Context, _ *peer.Request) (any, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// answers is a handler that returns result.
func answers(result any) peer.HandlerFunc {
	return func(context.Context, *peer.Request) (any, error) { return result, nil }
}

func notification(method string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`, method) }

func call(id any, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q}`, id, method)
}

func result(id any, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":%s}`, id, value)
}

// wantTook fails t unless exactly want of virtual time went by since began.
func wantTook(t *testing.T, what string, began time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(began); got != want {
		t.Errorf("%s took %v, want %v", what, got, want)
	}
}

// record is a log and the events of a connection.
type record struct {
	mu     sync.Mutex
	text   bytes.Buffer
	events []peer.Event
}

// attach makes o write to r.
func (r *record) attach(o *peer.Options) *peer.Options {
	o.Logger = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Events = func(ev peer.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, ev)
	}
	return o
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// of returns the events of one kind.
func (r *record) of(kind peer.EventKind) []peer.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(ev peer.Event) bool { return ev.Kind != kind })
}

// lines counts the log lines that hold all words.
func (r *record) lines(words ...string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.text.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			n++
		}
	}
	return n
}

// A library that ran a goroutine for each notification put 9,718 of 20,000 in
// the wrong order.
func TestOrderOfArrival(t *testing.T) {
	const total, every = 20000, 100
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []int
		running, overlaps := 0, 0
		opts := methods{
			"tick": func(_ context.Context, req *peer.Request) (any, error) {
				var in []int
				err := req.Decode(&in)
				mu.Lock()
				if running++; running > 1 {
					overlaps++
				}
				seen = append(seen, in...)
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				running--
				mu.Unlock()
				return nil, err
			},
			"count": func(context.Context, *peer.Request) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				return len(seen), nil
			},
		}.options()
		opts.Limits.Notifications = total
		raw, _ := peertest.Against(t, opts)
		for i := range total {
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"tick","params":[%d]}`, i))
			if (i+1)%every == 0 {
				raw.Send(call(i+1, "count"))
			}
		}
		synctest.Wait()
		for _, text := range raw.Waiting() {
			var before, count int
			if _, err := fmt.Sscanf(text, `{"jsonrpc":"2.0","id":%d,"result":%d}`, &before, &count); err != nil || count < before {
				t.Fatalf("count after %d notifications = %s, want at least %d", before, text, before)
			}
		}
		if len(seen) != total || !slices.IsSorted(seen) || overlaps > 0 {
			t.Errorf("handled %d, sorted %t, %d overlaps; want %d in order, one at a time",
				len(seen), slices.IsSorted(seen), overlaps, total)
		}
	})
}

func TestOrderBarrier(t *testing.T) {
	for _, test := range []struct {
		name      string
		noBarrier bool
		want      time.Duration
	}{
		{"ordered", false, 100 * time.Millisecond},
		{"NoBarrier", true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := methods{"nap": naps(100 * time.Millisecond), "now": answers(1)}.options()
				opts.NoBarrier = test.noBarrier
				raw, conn := peertest.Against(t, opts)
				began := time.Now()
				raw.Send(notification("nap"), call(7, "now"))
				raw.Want(result(7, "1"))
				wantTook(t, "a call behind a notification", began, test.want)

				time.Sleep(time.Second)
				began = time.Now()
				go func() {
					// The second notification comes too late to hold the answer up.
					raw.Want(call(1, "x"))
					raw.Send(notification("nap"), result(1, "2"), notification("nap"))
				}()
				if err := conn.Call(t.Context(), "x", nil, nil); err != nil {
					t.Fatal(err)
				}
				wantTook(t, "an answer behind a notification", began, test.want)
				synctest.Wait()
				if n := conn.Stats().Notifications; test.noBarrier && n != 2 {
					t.Errorf("Notifications = %d after the answer, want 2: one running, one queued", n)
				}
			})
		})
	}
}

// While a notification handler waits in a Call made with its context nothing
// waits for it: the other end may need an answer first. Its own call does not
// wait for the notification it is made in, or for those queued behind that.
func TestOrderNotificationHandlerCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick atomic.Bool
		raw, _ := peertest.Against(t, methods{
			"ask": func(ctx context.Context, req *peer.Request) (any, error) {
				time.Sleep(10 * time.Millisecond)
				return nil, req.Conn.Call(ctx, "question", nil, nil)
			},
			"quick": func(context.Context, *peer.Request) (any, error) { quick.Store(true); return nil, nil },
			"now":   answers(1),
		}.options())
		began := time.Now()
		raw.Send(notification("ask"), call(1, "now")) // held until the handler calls
		got := []string{raw.Receive(), raw.Receive()} // of two goroutines, in either order
		slices.Sort(got)
		if want := []string{call(1, "question"), result(1, "1")}; !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
		raw.Send(call(2, "now")) // comes while it waits
		raw.Want(result(2, "1"))
		raw.Send(notification("quick"), call(3, "now")) // behind one that is queued
		raw.Want(result(3, "1"))
		if quick.Load() {
			t.Error("a second notification ran while the first had not returned")
		}
		raw.Send(result(1, "0"), call(4, "now"))
		raw.Want(result(4, "1"))
		if !quick.Load() {
			t.Error("the queued notification did not run before the call behind it")
		}
		wantTook(t, "all of it", began, 10*time.Millisecond)
	})
}

// A notification handler calls, and its callee calls back; that handler may call
// once more. Nothing in the chain may wait for the notification it stands in.
func TestOrderCalleeCallsBack(t *testing.T) {
	chain := func(next string) peer.HandlerFunc {
		return func(ctx context.Context, req *peer.Request) (any, error) {
			return true, req.Conn.Call(ctx, next, nil, nil)
		}
	}
	for _, test := range []struct {
		name string
		back peer.HandlerFunc
	}{
		{"once", answers(true)},
		{"and calls once more", chain("end")},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := make(chan error, 1)
				left, _ := peertest.Pair(t,
					methods{"there": chain("back"), "end": answers(true)}.options(),
					methods{"back": test.back, "begin": func(ctx context.Context, req *peer.Request) (any, error) {
						err := req.Conn.Call(ctx, "there", nil, nil)
						done <- err
						return nil, err
					}}.options())
				began := time.Now()
				if err := left.Notify(t.Context(), "begin", nil); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				wantTook(t, "the chain", began, 0)
			})
		})
	}
}

// A caller may hold a lock that a notification handler wants. (The lock is a
// channel, since a bubble's time stands still while somebody waits for a Mutex.)
func TestOrderWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec record
		lock := make(chan struct{}, 1)
		raw, conn := peertest.Against(t, rec.attach(methods{
			"stuck": func(context.Context, *peer.Request) (any, error) {
				lock <- struct{}{}
				<-lock
				return nil, nil
			},
			"now": answers(1),
		}.options()))
		lock <- struct{}{}
		began := time.Now()
		go func() {
			raw.Want(call(1, "x"), call(2, "x"))
			raw.Send(notification("stuck"), result(1, "2"), result(2, "2"), call(7, "now"), notification("now"))
		}()
		for _, at := range []struct {
			after time.Duration
			lines int
		}{{999 * time.Millisecond, 0}, {1001 * time.Millisecond, 1}, {4999 * time.Millisecond, 1}} {
			time.AfterFunc(at.after, func() {
				if n := rec.lines("wait for a notification handler", "method=stuck"); n != at.lines {
					t.Errorf("after %v %d log lines name the handler, want %d", at.after, n, at.lines)
				}
			})
		}
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				if err := conn.Call(t.Context(), "x", nil, nil); err != nil {
					t.Error(err)
				}
				wantTook(t, "the answer", began, 5*time.Second)
			})
			synctest.Wait()
		}
		callers.Wait()
		raw.Want(result(7, "1"))
		wantTook(t, "the held call", began, 5*time.Second)
		<-lock
		synctest.Wait()
		events := rec.of(peer.OrderWait)
		if len(events) != 3 {
			t.Fatalf("%d OrderWait events, want one for the call, one for each answer", len(events))
		}
		for _, ev := range events {
			if ev.Method != "stuck" || ev.After != 5*time.Second {
				t.Errorf("OrderWait event = %q after %v, want \"stuck\" after 5s", ev.Method, ev.After)
			}
		}
		if n := conn.Stats().Notifications; n != 0 {
			t.Errorf("Notifications = %d at the end, want 0", n)
		}
	})
}

// A connection that ends ends these waits too, and so does the caller's context.
func TestOrderWaitEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*peer.Conn, context.CancelFunc)
		want error
	}{
		{"context", func(_ *peer.Conn, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"Close", func(c *peer.Conn, _ context.CancelFunc) { _ = c.Close() }, peer.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, methods{"nap": naps(3 * time.Second)}.options())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				time.AfterFunc(200*time.Millisecond, func() { test.end(conn, cancel) })
				go func() {
					raw.Want(call(1, "x"))
					raw.Send(notification("nap"), notification("nap"), result(1, "2"))
				}()
				if err := conn.Call(ctx, "x", nil, nil); !errors.Is(err, test.want) {
					t.Errorf("Call = %v, want %v", err, test.want)
				}
				wantTook(t, "the call", began, 200*time.Millisecond)
			})
		})
	}
}

func TestOrderAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		note := func(what string) { mu.Lock(); defer mu.Unlock(); seen = append(seen, what) }
		raw, conn := peertest.Against(t, methods{
			"long": func(ctx context.Context, _ *peer.Request) (any, error) {
				time.Sleep(10 * time.Millisecond)
				peer.Async(ctx)
				peer.Async(ctx) // must not give up the place of the next one
				note("long gave up")
				time.Sleep(time.Second)
				peer.Async(ctx)
				note("long")
				return nil, nil
			},
			"short": func(context.Context, *peer.Request) (any, error) {
				note("short begins")
				time.Sleep(10 * time.Millisecond)
				note("short")
				return nil, nil
			},
			"now": func(ctx context.Context, _ *peer.Request) (any, error) {
				peer.Async(ctx) // does nothing in a call
				note("call")
				return 1, nil
			},
		}.options())
		began := time.Now()
		go func() {
			raw.Want(call(1, "x"))
			raw.Send(notification("long"), call(7, "now"), result(1, "2"), notification("short"), notification("short"))
		}()
		if err := conn.Call(t.Context(), "x", nil, nil); err != nil {
			t.Fatal(err)
		}
		wantTook(t, "the answer", began, 10*time.Millisecond)
		raw.Want(result(7, "1"))
		wantTook(t, "the held call", began, 10*time.Millisecond)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		seen = slices.DeleteFunc(seen, func(s string) bool { return s == "call" || s == "long gave up" })
		if want := []string{"short begins", "short", "short begins", "short", "long"}; !slices.Equal(seen, want) {
			t.Errorf("order = %q, want %q", seen, want)
		}
		if n := conn.Stats().Notifications; n != 0 {
			t.Errorf("Notifications = %d, want 0", n)
		}
	})
}

// In a call's handler Async gives up nobody else's place.
func TestOrderAsyncInCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{
			"async": func(ctx context.Context, _ *peer.Request) (any, error) { peer.Async(ctx); return 1, nil },
			"ask": func(ctx context.Context, req *peer.Request) (any, error) {
				return nil, req.Conn.Call(ctx, "question", nil, nil)
			},
		}.options())
		raw.Send(notification("ask"), notification("ask"))
		raw.Want(call(1, "question"))
		raw.Send(call(7, "async"))
		raw.Want(result(7, "1"))
		synctest.Wait()
		if extra := raw.Waiting(); len(extra) > 0 {
			t.Errorf("the second notification ran beside the first: %q", extra)
		}
		raw.Send(result(1, "0"))
		raw.Want(call(2, "question"))
		raw.Send(result(2, "0"))
		synctest.Wait()
		if n := conn.Stats().Notifications; n != 0 {
			t.Errorf("Notifications = %d, want 0", n)
		}
	})
}

// A notification handler that does not return as it should stops nothing.
func TestOrderBrokenHandler(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context){
		"panic":              func(context.Context) { panic("oh") },
		"Goexit":             func(context.Context) { runtime.Goexit() },
		"panic after Async":  func(ctx context.Context) { peer.Async(ctx); panic("oh") },
		"Goexit after Async": func(ctx context.Context) { peer.Async(ctx); runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				raw, conn := peertest.Against(t, methods{
					"broken": func(ctx context.Context, _ *peer.Request) (any, error) {
						time.Sleep(time.Millisecond)
						f(ctx)
						return nil, nil
					},
					"next": func(context.Context, *peer.Request) (any, error) { ran++; return 1, nil },
				}.options())
				began := time.Now()
				raw.Send(notification("broken"), notification("broken"), notification("next"), call(7, "next"))
				raw.Want(result(7, "1"))
				wantTook(t, "the call behind", began, 2*time.Millisecond)
				if ran != 2 {
					t.Errorf("next ran %d times, want 2", ran)
				}
				synctest.Wait()
				if s := conn.Stats(); s.Notifications != 0 || s.Methods["broken"].Errors != 2 {
					t.Errorf("Notifications, Errors = %d, %d, want 0, 2", s.Notifications, s.Methods["broken"].Errors)
				}
			})
		})
	}
}

// A proxy: a notification on one connection calls on another with its context,
// and the end it stands for must be answered meanwhile.
func TestOrderProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back, proxyOut := peertest.Against(t, nil)
		front, _ := peertest.Against(t, methods{
			"forward": func(ctx context.Context, _ *peer.Request) (any, error) {
				return nil, proxyOut.Call(ctx, "x", nil, nil)
			},
			"now": answers(1),
		}.options())
		began := time.Now()
		front.Send(notification("forward"), call(7, "now"))
		back.Want(call(1, "x"))
		front.Want(result(7, "1"))
		front.Send(call(8, "now"))
		front.Want(result(8, "1"))
		back.Send(result(1, "0"))
		synctest.Wait()
		wantTook(t, "all of it", began, 0)
	})
}

package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

func cancelOf(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%v}}`, id)
}

func failure(id any, code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"error":{"code":%d,"message":%q}}`, id, code, message)
}

func cancelled(id any) string { return failure(id, -32800, "request cancelled") }

// What one end tells the other when a caller's context ends: the call, then
// exactly one cancel, or nothing where the profile has none.
func TestCancelLeaves(t *testing.T) {
	for _, test := range []struct {
		name   string
		cancel peer.Cancel
		want   string
	}{
		{"base", peer.Cancel{}, cancelOf(1)},
		{"other words", peer.Cancel{Method: "stop", Field: "requestId"}, `{"jsonrpc":"2.0","method":"stop","params":{"requestId":1}}`},
		{"off", peer.Cancel{Off: true}, ""},
		{"exempt", peer.Cancel{Exempt: []string{"x"}}, ""},
		{"another is exempt", peer.Cancel{Exempt: []string{"y"}}, cancelOf(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Profile: &peer.Profile{Cancel: test.cancel}})
				ctx, cancel := context.WithCancelCause(t.Context())
				gone := errors.New("the user left")
				time.AfterFunc(time.Second, func() { cancel(gone) })
				err := conn.Call(ctx, "x", nil, nil)
				if !errors.Is(err, context.Canceled) || !errors.Is(err, gone) {
					t.Errorf("Call = %v, want context.Canceled and its cause", err)
				}
				synctest.Wait()
				raw.Want(call(1, "x"))
				if got := strings.Join(raw.Waiting(), " "); got != test.want {
					t.Errorf("after the call left %q, want %q", got, test.want)
				}
			})
		})
	}
}

// A cancel ends the handler's context, with a cause that tells who wanted it.
func TestHandlerContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept context.Context
		causes := make(chan error, 1)
		opts := methods{
			"hang": func(ctx context.Context, _ *peer.Request) (any, error) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return nil, ctx.Err()
			},
			"keep": func(ctx context.Context, _ *peer.Request) (any, error) { kept = ctx; return 1, nil },
		}.options()
		opts.Profile = &peer.Profile{Cancel: peer.Cancel{Reason: "reason"}}
		raw, conn := peertest.Against(t, opts)
		raw.Send(call(7, "hang"))
		synctest.Wait()
		raw.Send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7,"reason":"enough"}}`)
		raw.Want(cancelled(7))
		cause := <-causes
		var told *peer.CancelError
		if !errors.As(cause, &told) || told.Reason != "enough" || !errors.Is(cause, context.Canceled) {
			t.Errorf("cause = %v, want a *CancelError with the reason that is context.Canceled", cause)
		}
		// It ends when the handler returns, and that is no cancel.
		raw.Send(call(8, "keep"))
		raw.Want(result(8, "1"))
		synctest.Wait()
		if cause := context.Cause(kept); cause == nil || errors.As(cause, &told) {
			t.Errorf("cause after the handler returned = %v, want one that is no *CancelError", cause)
		}
		// And when the connection ends.
		raw.Send(call(9, "hang"))
		synctest.Wait()
		_ = conn.Close()
		if cause := <-causes; !errors.Is(cause, peer.ErrClosed) {
			t.Errorf("cause after Close = %v, want ErrClosed", cause)
		}
	})
}

// The end of Options.BaseContext reaches the handlers; the connection goes on.
func TestBaseContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, end := context.WithCancel(t.Context())
		opts := methods{"hang": hangs, "now": answers(1)}.options()
		opts.BaseContext = base
		raw, conn := peertest.Against(t, opts)
		raw.Send(call(7, "hang"))
		synctest.Wait()
		end()
		raw.Want(failure(7, -32011, "shutting down")) // the handler returned
		raw.Send(call(8, "now"))
		_ = raw.Receive() // whatever it is, there is an answer
		if err := conn.Err(); err != nil {
			t.Errorf("Err = %v after BaseContext ended, want nil", err)
		}
		select {
		case <-conn.Done():
			t.Error("the connection ended with BaseContext")
		default:
		}
	})
}

// What a cancelled call is answered with is the handler's affair.
func TestCancelledAnswer(t *testing.T) {
	for _, test := range []struct {
		name string
		f    func(ctx context.Context) (any, error)
		want string
	}{
		{"ctx.Err", func(ctx context.Context) (any, error) { return nil, ctx.Err() }, cancelled(7)},
		{"cause, wrapped", func(ctx context.Context) (any, error) {
			return nil, fmt.Errorf("giving up: %w", context.Cause(ctx))
		}, cancelled(7)},
		{"a result", func(context.Context) (any, error) { return "half", nil }, result(7, `"half"`)},
		{"its own error", func(context.Context) (any, error) { return nil, &peer.Error{Code: 5, Message: "m"} }, failure(7, 5, "m")},
		{"another error", func(context.Context) (any, error) { return nil, errors.New("secret") }, failure(7, -32603, "internal error")},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, methods{"x": func(ctx context.Context, _ *peer.Request) (any, error) {
					<-ctx.Done()
					return test.f(ctx)
				}}.options())
				raw.Send(call(7, "x"))
				synctest.Wait()                    // one cancelled before it starts does not run
				raw.Send(cancelOf(7), cancelOf(7)) // the second changes nothing
				raw.Want(test.want)
				synctest.Wait()
				if extra := raw.Waiting(); len(extra) > 0 {
					t.Errorf("answered twice: %q", extra)
				}
				if n := conn.Stats().InFlight; n != 0 {
					t.Errorf("InFlight = %d, want 0", n)
				}
			})
		})
	}
}

// A cancel finds its call by the exact id, and nothing else.
func TestCancelFindsItsCall(t *testing.T) {
	for _, test := range []struct {
		name, id, params string
		found            bool
	}{
		{"number", `1`, `{"id":1}`, true},
		{"1.0 for 1", `1`, `{"id":1.0}`, true},
		{"1e0 for 1", `1`, `{"id":1e0}`, true},
		{"text", `"a"`, `{"id":"\u0061"}`, true},
		{"null", `null`, `{"id":null}`, true},
		{"beyond a float64", `9007199254740993`, `{"id":9007199254740993}`, true},
		{"text for a number", `1`, `{"id":"1"}`, false},
		{"number for a text", `"1"`, `{"id":1}`, false},
		{"its neighbour in float64", `9007199254740993`, `{"id":9007199254740992}`, false},
		{"unknown", `1`, `{"id":2}`, false},
		{"null for 0", `0`, `{"id":null}`, false},
		{"no id", `1`, `{}`, false},
		{"name in another case", `1`, `{"ID":1}`, false},
		{"array", `1`, `[1]`, false},
		{"object as id", `1`, `{"id":{"id":1}}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, methods{"hang": hangs, "now": answers(1)}.options())
				raw.Send(call(test.id, "hang"), `{"jsonrpc":"2.0","method":"$/cancelRequest","params":`+test.params+`}`)
				synctest.Wait()
				want, unknown := "", uint64(1)
				if test.found {
					want, unknown = cancelled(test.id), 0
				}
				if got := strings.Join(raw.Waiting(), " "); got != want {
					t.Errorf("answered %q, want %q", got, want)
				}
				if got := conn.Stats().Events[peer.UnknownCancel]; got != unknown {
					t.Errorf("UnknownCancel = %d, want %d", got, unknown)
				}
				// One for a call that is over is counted, and that is all.
				raw.Send(call(`"over"`, "now"))
				raw.Want(result(`"over"`, "1"))
				raw.Send(cancelOf(`"over"`))
				synctest.Wait()
				if got := conn.Stats().Events[peer.UnknownCancel]; got != unknown+1 {
					t.Errorf("UnknownCancel = %d after one for a finished call, want %d", got, unknown+1)
				}
			})
		})
	}
}

// A cancel does not queue behind notifications. A call that still waits for
// them does not run any more.
func TestCancelPassesNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Bool
		raw, conn := peertest.Against(t, methods{
			"nap":  naps(time.Millisecond),
			"hang": hangs,
			"run":  func(context.Context, *peer.Request) (any, error) { ran.Store(true); return 1, nil },
		}.options())
		began := time.Now()
		raw.Send(call(1, "hang"))
		for range 1000 {
			raw.Send(notification("nap"))
		}
		raw.Send(call(2, "run"), cancelOf(1))
		raw.Want(cancelled(1))
		raw.Send(cancelOf(2))
		raw.Want(cancelled(2))
		wantTook(t, "the cancels", began, 0)
		if ran.Load() {
			t.Error("a call that was cancelled before it started ran")
		}
		time.Sleep(5 * time.Second)
		if s := conn.Stats(); s.InFlight != 0 || s.Notifications != 0 {
			t.Errorf("InFlight, Notifications = %d, %d, want 0, 0", s.InFlight, s.Notifications)
		}
	})
}

func TestCancelSilent(t *testing.T) {
	item := func(id int, method string) string { return call(id, method) }
	for _, test := range []struct {
		name string
		send []string
		want string
	}{
		{"alone", []string{item(1, "hang"), cancelOf(1)}, ""},
		{"a result is dropped too", []string{item(1, "late"), cancelOf(1)}, ""},
		{"in a batch", []string{"[" + item(1, "hang") + "," + item(2, "now") + "]", cancelOf(1)}, "[" + result(2, "1") + "]"},
		{"a whole batch", []string{"[" + item(1, "hang") + "," + item(2, "late") + "]", cancelOf(1), cancelOf(2)}, ""},
		{"exempt", []string{item(1, "handshake"), cancelOf(1)}, result(1, `"rested"`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := methods{
					"hang": hangs, "now": answers(1), "handshake": naps(time.Millisecond),
					"late": func(ctx context.Context, _ *peer.Request) (any, error) { <-ctx.Done(); return 1, nil },
				}.options()
				opts.Profile = &peer.Profile{Cancel: peer.Cancel{Silent: true, Exempt: []string{"handshake"}}}
				raw, conn := peertest.Against(t, opts)
				raw.Send(test.send...)
				time.Sleep(time.Second)
				if got := strings.Join(raw.Waiting(), " "); got != test.want {
					t.Errorf("answered %q, want %q", got, test.want)
				}
				s := conn.Stats()
				if s.InFlight != 0 {
					t.Errorf("InFlight = %d, want 0: silence frees the slot too", s.InFlight)
				}
				if exempt := s.Events[peer.UnknownCancel] == 1; exempt != (test.name == "exempt") {
					t.Errorf("UnknownCancel = %d", s.Events[peer.UnknownCancel])
				}
			})
		})
	}
}

// With Cancel.Off the notification is one like any other.
func TestCancelOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got json.RawMessage
		opts := methods{"nap": naps(time.Millisecond), "$/cancelRequest": func(_ context.Context, req *peer.Request) (any, error) {
			return nil, req.Decode(&got)
		}}.options()
		opts.Profile = &peer.Profile{Cancel: peer.Cancel{Off: true}}
		raw, _ := peertest.Against(t, opts)
		raw.Send(call(1, "nap"), cancelOf(1))
		raw.Want(result(1, `"rested"`))
		if string(got) != `{"id":1}` {
			t.Errorf("the handler got %s, want {\"id\":1}", got)
		}
	})
}

// Calling and cancelling in a loop freed slots while the handlers ran on.
func TestCancelKeepsSlot(t *testing.T) {
	const bound = 10
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		release := make(chan struct{})
		opts := methods{"deaf": func(context.Context, *peer.Request) (any, error) {
			running.Add(1)
			defer running.Add(-1)
			<-release
			return 1, nil
		}}.options()
		opts.Limits.InFlight = bound
		raw, conn := peertest.Against(t, opts)
		for i := range 100 {
			raw.Send(call(i, "deaf"))
			synctest.Wait()
			raw.Send(cancelOf(i))
		}
		synctest.Wait()
		if n, s := running.Load(), conn.Stats(); n > bound || s.InFlight != bound {
			t.Errorf("%d handlers run, InFlight = %d, want at most %d", n, s.InFlight, bound)
		}
		for i := bound; i < 100; i++ {
			raw.Want(failure(i, -32010, "overloaded"))
		}
		close(release)
		synctest.Wait()
		if n := len(raw.Waiting()); n != bound {
			t.Errorf("%d answers when the handlers returned, want %d", n, bound)
		}
		raw.Send(call(100, "deaf"))
		raw.Want(result(100, "1"))
	})
}

// A cancel that races with its answer: the caller sees one of the two, and
// afterwards nothing is left at either end.
func TestCancelRacesAnswer(t *testing.T) {
	const rounds = 2000
	var cancels sync.Map // by the number of the call; the handler cancels as it returns
	opts := methods{"now": func(_ context.Context, req *peer.Request) (any, error) {
		var in []int
		err := req.Decode(&in)
		cancel, _ := cancels.Load(in[0])
		go cancel.(context.CancelFunc)()
		for range in[0] / 8 % 8 {
			runtime.Gosched()
		}
		return 42, err
	}}.options()
	// With one processor all may be given up before one answer is read.
	opts.Limits.InFlight, opts.Limits.Abandoned = rounds, rounds
	left, right := peertest.Pair(t, &peer.Options{Limits: opts.Limits}, opts)
	var callers sync.WaitGroup
	var won, lost atomic.Int32
	for first := range 8 {
		callers.Go(func() {
			for i := first; i < rounds; i += 8 {
				ctx, cancel := context.WithCancel(context.Background())
				cancels.Store(i, cancel)
				n := 0
				switch err := left.Call(ctx, "now", []int{i}, &n); {
				case err == nil && n == 42:
					won.Add(1)
				case errors.Is(err, context.Canceled) && n == 0:
					lost.Add(1)
				default:
					t.Errorf("Call = %d, %v, want 42 or context.Canceled", n, err)
				}
			}
		})
	}
	callers.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := right.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v, want nil: something was left in flight", err)
	}
	<-left.Done()
	s, r := left.Stats(), right.Stats()
	if won.Load()+lost.Load() != rounds || s.Pending != 0 || r.InFlight != 0 || s.Events[peer.UnknownResponse]+s.Events[peer.BrokenResponse] != 0 {
		t.Errorf("%d won, %d lost of %d; left %+v, right %+v", won.Load(), lost.Load(), rounds, s, r)
	}
	t.Logf("%d answers, %d cancels won", won.Load(), lost.Load())
	if calls := r.Methods["now"].Calls; uint64(won.Load())+s.Events[peer.LateResponse] != calls {
		t.Errorf("%d answers taken and %d late, want together the %d calls that ran", won.Load(), s.Events[peer.LateResponse], calls)
	}
}

package peer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// Names of unknown notifications are kept, and were counted nowhere where the
// notification stood in an array: what waits grew past NotificationBytes.
func TestLongNamesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"hang": hangs}.options()
		opts.Limits.NotificationBytes = 16 << 10
		raw, conn := peertest.Against(t, opts)
		raw.Send(notification("hang"))
		sent := 0
		for ; sent < 10 && conn.Err() == nil; sent++ {
			raw.Send("[" + notification(strings.Repeat("x", 4<<10)) + "]")
			synctest.Wait()
		}
		if sent == 10 {
			t.Fatalf("%d names of 4 KiB wait within 16 KiB", sent)
		}
		wantClose(t, raw, 1008)
		<-conn.Done()
		wantLimit(t, "Err()", conn.Err(), "NotificationBytes")
	})
}

// The reason of a cancel stays as long as its handler, and could be as long as a
// message. It is cut to 1 KiB, between characters.
func TestCancelReasonIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		opts := methods{"hang": func(ctx context.Context, _ *peer.Request) (any, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil, ctx.Err()
		}}.options()
		opts.Profile = &peer.Profile{Cancel: peer.Cancel{Reason: "reason"}}
		raw, _ := peertest.Against(t, opts)
		long := "x" + strings.Repeat("é", 2<<10)
		raw.Send(call(7, "hang"))
		synctest.Wait() // it runs
		raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7,"reason":%q}}`, long))
		var told *peer.CancelError
		if err := <-causes; !errors.As(err, &told) {
			t.Fatalf("cause = %v, want a *CancelError", err)
		}
		if n := len(told.Reason); n != 1023 || !utf8.ValidString(told.Reason) || !strings.HasPrefix(long, told.Reason) {
			t.Errorf("%d bytes of the reason are kept, valid %t, want the first 1023", n, utf8.ValidString(told.Reason))
		}
		raw.Want(cancelled(7))
	})
}

// A cancel with two ids gave up the last of them.
func TestCancelOfTwoIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"hang": hangs}.options())
		raw.Send(call(1, "hang"), call(2, "hang"), `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1,"id":2}}`)
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 || conn.Stats().Events[peer.UnknownCancel] != 1 {
			t.Errorf("answered %q with %v, want nothing and one unknown cancel", got, conn.Stats().Events)
		}
	})
}

// Middleware may rewrite its request. That changed the id of the answer, decided
// whether a cancel was heeded, and raced with the reader.
func TestRequestIsRewritten(t *testing.T) {
	swap := map[string]string{"keep": "m", "m": "keep"}
	rewrite := func(h peer.Handler) peer.Handler {
		return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
			req.Method, req.ID = swap[req.Method], codec.NumberID(99)
			return h.ServeRPC(ctx, req)
		})
	}
	var reg peer.Registry
	for name := range swap {
		reg.Handle(name, peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Second):
				return 1, nil
			}
		}))
	}
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{
			Handler: peer.Chain(&reg, rewrite),
			Profile: &peer.Profile{Cancel: peer.Cancel{Exempt: []string{"keep"}}},
		})
		for id := range 100 { // no wait between: under -race the writes would show
			raw.Send(call(id, "keep"), cancelOf(id))
		}
		answered := map[string]bool{}
		for range 100 {
			answered[raw.Receive()] = true
		}
		for id := range 100 {
			if !answered[result(id, "1")] {
				t.Errorf("call %d has no result; its method cannot be cancelled", id)
			}
		}
		raw.Send(call(777, "keep"))
		raw.Want(result(777, "1"))
		raw.Send(call(778, "m"))
		synctest.Wait()
		raw.Send(cancelOf(778))
		raw.Want(cancelled(778))
		if got := conn.Stats().Events[peer.UnknownCancel]; got != 100 {
			t.Errorf("%d unknown cancels, want 100 of the exempt method", got)
		}
	})
}

// A connection that ended in the middle of an array never gave back the places
// of the calls before.
func TestArrayEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"hang": hangs}.options())
		for range 99 {
			raw.Send("1")
		}
		raw.Send("[" + call(1, "hang") + "," + notification("hang") + ",1," + call(2, "hang") + "]")
		<-conn.Done()
		var refused *peer.RefusedError
		if err := conn.Err(); !errors.As(err, &refused) {
			t.Errorf("Err() = %v, want a *RefusedError", err)
		}
		if s := conn.Stats(); s.InFlight != 0 || s.Notifications != 0 {
			t.Errorf("InFlight, Notifications = %d, %d after Done, want 0, 0", s.InFlight, s.Notifications)
		}
	})
}

// Some protocols report errors without an id, and a hundred of them ended the
// connection. Other broken answers still do.
func TestErrorsWithoutIDAreNoOffence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		for range 150 {
			raw.Send(`{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}`)
		}
		synctest.Wait()
		if got := conn.Stats().Events[peer.BrokenResponse]; conn.Err() != nil || got != 150 {
			t.Fatalf("Err() = %v with %d broken responses, want nil and 150", conn.Err(), got)
		}
		for range 100 {
			raw.Send(`{"jsonrpc":"2.0","id":7,"result":1,"error":{}}`)
		}
		wantClose(t, raw, 1008)
	})
}

// An OrderWait shorter than a second was not heeded.
func TestShortOrderWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"nap": naps(3 * time.Second), "now": answers(1)}.options()
		opts.Limits.OrderWait = 50 * time.Millisecond
		raw, conn := peertest.Against(t, opts)
		done := make(chan error, 1)
		go func() { done <- conn.Call(t.Context(), "x", nil, nil) }()
		raw.Want(call(1, "x"))
		raw.Send(notification("nap"))
		began := time.Now()
		raw.Send(call(7, "now"))
		raw.Want(result(7, "1"))
		wantTook(t, "the call", began, 50*time.Millisecond)
		began = time.Now()
		raw.Send(result(1, "1"))
		if err := <-done; err != nil {
			t.Error(err)
		}
		wantTook(t, "the answer", began, 50*time.Millisecond)
	})
}

// Answers that wait for a notification were held without a bound.
func TestWaitingAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events eventList
		opts := methods{"nap": naps(time.Second)}.options()
		opts.Events, opts.Limits.InFlightBytes = events.add, 1000
		raw, conn := peertest.Against(t, opts)
		done := make(chan error, 3)
		for id := range 3 {
			go func() { done <- conn.Call(t.Context(), "x", nil, nil) }()
			raw.Want(call(id+1, "x"))
		}
		began := time.Now()
		raw.Send(notification("nap"))
		for id, returned := range []int{0, 0, 1} { // 900 bytes fit, 1,350 do not
			raw.Send(result(id+1, `"`+strings.Repeat("x", 410)+`"`))
			synctest.Wait()
			if len(done) != returned || len(events.of(peer.OrderWait)) != returned {
				t.Fatalf("after answer %d returned %d calls with %d events, want %d", id+1, len(done), len(events.of(peer.OrderWait)), returned)
			}
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		wantTook(t, "the answers that wait", began, time.Second)
	})
}

// Notifications that kept coming kept Shutdown from its end. They are refused,
// save while own calls wait, which may need them.
func TestShutdownRefusesNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events eventList
		var ran atomic.Int32
		opts := methods{"nap": naps(10 * time.Second), "tick": func(context.Context, *peer.Request) (any, error) {
			ran.Add(1)
			time.Sleep(3 * time.Second)
			return nil, nil
		}}.options()
		opts.Events = events.add
		raw, conn := peertest.Against(t, opts)
		go func() { _ = conn.Call(t.Context(), "own", nil, nil) }()
		raw.Want(call(1, "own"))
		raw.Send(call(7, "nap"))
		synctest.Wait()
		began := time.Now()
		shut := make(chan error, 1)
		go func() { shut <- conn.Shutdown(t.Context()) }()
		synctest.Wait()
		raw.Send(notification("tick"))
		synctest.Wait()
		if ran.Load() != 1 {
			t.Error("a notification did not run while an own call waits")
		}
		raw.Send(result(1, "0"))
		time.Sleep(3 * time.Second) // the own call waited for that notification
		for range 3 {
			raw.Send(notification("tick"))
			time.Sleep(2 * time.Second)
		}
		if err := <-shut; err != nil {
			t.Errorf("Shutdown = %v, want nil", err)
		}
		wantTook(t, "Shutdown", began, 10*time.Second)
		<-conn.Done()
		refused := events.of(peer.RefusedNotification)
		if len(refused) != 3 || ran.Load() != 1 {
			t.Fatalf("%d notifications were refused and %d ran, want 3 and 1", len(refused), ran.Load())
		}
		if refused[0].Method != "tick" || !errors.Is(refused[0].Err, peer.ErrShutdown) {
			t.Errorf("event = %+v, want ErrShutdown for tick", refused[0])
		}
	})
}

// Shutdown said nil of a connection that broke meanwhile.
func TestShutdownOfBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"hang": hangs}.options())
		raw.Send(call(7, "hang"))
		synctest.Wait()
		shut := make(chan error, 1)
		go func() { shut <- conn.Shutdown(t.Context()) }()
		synctest.Wait()
		raw.Close(coded{})
		var closed *peer.CloseError
		if err := <-shut; !errors.As(err, &closed) || closed.Code != 4321 {
			t.Errorf("Shutdown = %v, want the cause with 4321", err)
		}
		if err := conn.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown after the end = %v, want nil", err)
		}
	})
}

// A Write that failed with io.EOF passed for an orderly end.
func TestWriteEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := peer.Pipe()
		conn := peertest.Start(t, &tap{Transport: b, write: func(context.Context, [][]byte, func() error) error { return io.EOF }}, nil)
		err := conn.Call(t.Context(), "x", nil, nil)
		<-conn.Done()
		if !errors.Is(err, io.EOF) || !errors.Is(conn.Err(), io.EOF) {
			t.Errorf("Call, Err = %v, %v, want io.EOF of the write", err, conn.Err())
		}
	})
}

// blockingLog is a slog.Handler that does not return before the channel closes.
type blockingLog struct {
	slog.Handler
	hold chan struct{}
}

func (l blockingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (l blockingLog) Handle(context.Context, slog.Record) error { <-l.hold; return nil }

func newBlockingLog() (log *slog.Logger, release func()) {
	l := blockingLog{slog.DiscardHandler, make(chan struct{})}
	return slog.New(l), func() { close(l.hold) }
}

// A logger that blocked kept back the answers of calls that failed, or took a
// goroutine for each line.
func TestLoggerBlocks(t *testing.T) {
	for name, fails := range map[string]peer.HandlerFunc{
		"panic": func(context.Context, *peer.Request) (any, error) { panic("p") },
		"error": func(context.Context, *peer.Request) (any, error) { return nil, io.ErrUnexpectedEOF },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := methods{"fails": fails}.options()
				log, release := newBlockingLog()
				defer release()
				opts.Logger = log
				raw, conn := peertest.Against(t, opts)
				before := runtime.NumGoroutine()
				for id := range 1000 {
					raw.Send(call(id, "fails"))
					raw.Want(failure(id, -32603, "internal error"))
				}
				synctest.Wait()
				if lost := conn.Stats().Events[peer.Lost]; lost < 700 {
					t.Errorf("%d lines were counted as lost, want some 740", lost)
				}
				if grown := runtime.NumGoroutine() - before; grown > 10 {
					t.Errorf("%d goroutines wait for the logger, want one", grown)
				}
			})
		})
	}
}

// An Events function that left its goroutine stopped all later events.
func TestEventsGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handed atomic.Int32
		raw, _ := peertest.Against(t, &peer.Options{Events: func(peer.Event) {
			if handed.Add(1)%2 == 0 {
				panic("from Events")
			}
			runtime.Goexit()
		}})
		for range 3 { // while more wait, and after
			for range 4 {
				raw.Send(result(77, "1"))
			}
			synctest.Wait()
		}
		if got := handed.Load(); got != 12 {
			t.Errorf("%d events were handed over, want 12", got)
		}
	})
}

// A Control function runs in the reader, where a panic ended the process.
func TestControlPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		raw, conn := peertest.Against(t, log.attach(methods{"now": answers(1)}.options()))
		_, _ = conn.Control("ctl", "", codec.ID{}, func(*codec.Object) { panic("in Control") })
		raw.Send(notification("ctl"), call(7, "now"))
		raw.Want(result(7, "1"))
		synctest.Wait()
		if conn.Err() != nil || log.lines("in Control", "hostile_test.go") != 1 {
			t.Errorf("Err() = %v with %d lines, want nil and the panic with its stack", conn.Err(), log.lines("in Control"))
		}
	})
}

// A handler that noticed the end of its connection was logged as a failure.
func TestEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		raw, conn := peertest.Against(t, log.attach(methods{"wait": func(ctx context.Context, _ *peer.Request) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}.options()))
		raw.Send(call(7, "wait"))
		synctest.Wait()
		raw.Close(coded{})
		<-conn.Done()
		if log.lines("level=ERROR") != 0 || log.lines("connection ended") != 1 {
			t.Errorf("logged %s, want no line at level ERROR and one that tells the end", log.text.String())
		}
	})
}

// ConnFrom finds the connection of a handler, and Conn.Context ends with it and
// its cause.
func TestConnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found := make(chan *peer.Conn, 1)
		raw, conn := peertest.Against(t, methods{"m": func(ctx context.Context, _ *peer.Request) (any, error) {
			c, ok := peer.ConnFrom(ctx)
			found <- c
			return ok, nil
		}}.options())
		raw.Send(call(7, "m"))
		raw.Want(result(7, "true"))
		if got := <-found; got != conn {
			t.Errorf("ConnFrom() = %p, want %p", got, conn)
		}
		if c, ok := peer.ConnFrom(conn.Context()); ok || c != nil || conn.Context().Err() != nil {
			t.Errorf("ConnFrom(Context()) = %v, %t, Err = %v, want nil, false, nil", c, ok, conn.Context().Err())
		}
		raw.Close(coded{})
		<-conn.Done()
		if cause := context.Cause(conn.Context()); cause == nil || !errors.Is(cause, conn.Err()) {
			t.Errorf("cause of Context() = %v, want %v", cause, conn.Err())
		}
	})
}

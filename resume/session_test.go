package resume_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/stream"
)

// slow is a handler that runs until release.
func slow(reg *peer.Registry) (started <-chan context.Context, release chan struct{}) {
	running := make(chan context.Context, 10)
	release = make(chan struct{})
	reg.Handle("slow", peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
		running <- ctx
		select {
		case <-release:
			return "done", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}))
	return running, release
}

// call makes a call in a goroutine of its own.
func call(c peer.Caller, method string, opts ...peer.CallOption) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Call(context.Background(), method, nil, nil, opts...) }()
	return done
}

// A turn runs on while its socket is gone, and its answer arrives.
func TestTurnOutlivesSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, release := slow(&reg)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		done := call(c, "slow")
		ctx := <-started
		w.setDown(true)
		w.cut()
		time.Sleep(time.Minute)
		if ctx.Err() != nil {
			t.Fatalf("the handler's context ended with its socket: %v", context.Cause(ctx))
		}
		close(release)
		time.Sleep(time.Second)
		w.setDown(false)
		if err := <-done; err != nil {
			t.Errorf("the answer of a turn that outlived its socket: %v", err)
		}
	})
}

// A turn nobody takes up again ends, and its handler learns why.
func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		w := newWorld(t, &resume.Options{Park: 30 * time.Second}, &peer.Options{Handler: &reg})
		var connected atomic.Int32
		c := w.client(&peer.ClientOptions{OnConnect: func(context.Context, *peer.Conn) error { connected.Add(1); return nil }}, nil)
		defer w.end(c)
		done := call(c, "slow")
		ctx := <-started
		time.Sleep(time.Second) // so that the call is acknowledged
		conn := w.conn()
		w.setDown(true)
		began := time.Now()
		w.cut()
		<-ctx.Done()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the session was kept for %v, want 30 s", took)
		}
		var gap *resume.GapError
		if !errors.As(context.Cause(ctx), &gap) || gap.Reason != resume.Expired {
			t.Errorf("the handler's context ended with %v", context.Cause(ctx))
		}
		<-conn.Done()
		if !errors.As(conn.Err(), &gap) {
			t.Errorf("the connection ended with %v", conn.Err())
		}
		err := <-done
		var failed *peer.CallError
		if !errors.As(err, &failed) || !errors.As(err, &gap) || gap.Reason != resume.Expired || failed.Sent != pending.Sent {
			t.Errorf("the call that waited: %v", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the dialling end gave up after %v", took)
		}
		w.setDown(false)
		next, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, conns := w.count(); connected.Load() != 2 || conns != 2 || next.Err() != nil {
			t.Errorf("OnConnect ran %d times, %d connections, %v", connected.Load(), conns, next.Err())
		}
		if s := w.sessions.Stats(); s.Lost[resume.Expired] != 1 || s.Open != 1 || s.Parked != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// How far a call got is told by what the other end acknowledged.
func TestSentIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		w := newWorld(t, &resume.Options{Park: time.Second}, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !conn.Resumes() || conn.Subprotocol() != resume.Subprotocol {
			t.Error("the connection does not say that it resumes")
		}
		sent := call(conn, "slow")
		<-started
		time.Sleep(time.Second)
		w.socket().deafen() // what is written from here on does not arrive
		maybe := call(conn, "slow")
		synctest.Wait()
		w.setDown(true)
		w.cut()
		synctest.Wait()
		blocked := call(conn, "slow") // for which the writer waits
		synctest.Wait()
		not := call(conn, "slow")
		for _, want := range []struct {
			done  <-chan error
			state pending.State
		}{{sent, pending.Sent}, {maybe, pending.MaybeSent}, {blocked, pending.NotSent}, {not, pending.NotSent}} {
			err := <-want.done
			var failed *peer.CallError
			var gap *resume.GapError
			if !errors.As(err, &failed) || !errors.As(err, &gap) || failed.Sent != want.state {
				t.Errorf("%v, want %v", err, want.state)
			}
		}
		if len(started) != 0 {
			t.Error("what was not sent ran")
		}
	})
}

// Writers wait for room, with their contexts, and go on when there is some.
func TestBufferFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		var reg peer.Registry
		reg.HandleNotification("n", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
			got.Add(1)
			return nil, nil
		}))
		w := newWorld(t, &resume.Options{Buffer: 8 << 10}, nil)
		c := w.client(&peer.ClientOptions{Options: peer.Options{Handler: &reg}}, nil)
		defer w.end(c)
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		conn := w.conn()
		w.setDown(true)
		w.cut()
		synctest.Wait()
		sent := int64(0)
		for ctx, cancel := context.WithTimeout(t.Context(), time.Second); ; sent++ {
			err := conn.Notify(ctx, "n", []string{strings.Repeat("x", 64<<10)})
			if err != nil {
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("with everything full: %v", err)
				}
				break
			}
		}
		if sent > 32 {
			t.Errorf("%d messages of 64 KiB are held for an end that is not there", sent)
		}
		w.setDown(false)
		time.Sleep(time.Minute)
		if got.Load() != sent {
			t.Errorf("%d of %d arrived", got.Load(), sent)
		}
	})
}

// A session over which nothing was ever sent is one all the same.
func TestIdleGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		c, conn := w.connected()
		defer w.end(c)
		w.setDown(true)
		w.cut()
		time.Sleep(time.Minute)
		w.setDown(false)
		time.Sleep(time.Minute)
		if s := w.sessions.Stats(); conn.Err() != nil || s.Resumed != 1 {
			t.Errorf("%v, %+v", conn.Err(), s)
		}
	})
}

// An end that does not speak the protocol, or has no principal, gets a plain connection.
func TestPlain(t *testing.T) {
	for _, name := range []string{"no subprotocol", "no principal"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reg peer.Registry
				add.Handle(&reg, sum)
				w := newWorld(t, nil, &peer.Options{Handler: &reg})
				w.plain = name == "no subprotocol"
				w.principal = ""
				c := w.client(nil, nil)
				defer w.end(c)
				conn, err := c.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if conn.Resumes() {
					t.Error("a plain connection says that it resumes")
				}
				if got, err := add.Call(t.Context(), c, []int{1, 2}); got != 3 || err != nil {
					t.Errorf("a call: %d, %v", got, err)
				}
				w.cut()
				synctest.Wait()
				if got, err := add.Call(t.Context(), c, []int{3, 4}); got != 7 || err != nil {
					t.Errorf("a call after a cut: %d, %v", got, err)
				}
				if s := w.sessions.Stats(); s.Opened != 0 {
					t.Errorf("stats: %+v", s)
				}
			})
		})
	}
}

// Without a principal there are sessions where an option says so.
func TestAnonymous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{Anonymous: true, PrincipalParked: 1, Park: time.Minute}, nil)
		w.principal = ""
		var clients []*peer.Client
		for range 3 {
			c := w.client(nil, nil)
			if conn, err := c.Conn(t.Context()); err != nil || !conn.Resumes() {
				t.Errorf("%v, %v", conn, err)
			}
			clients = append(clients, c)
		}
		time.Sleep(time.Second)
		w.setDown(true)
		for _, s := range w.all() {
			s.cut()
		}
		synctest.Wait()
		if s := w.sessions.Stats(); s.Parked != 3 { // their share is everything
			t.Errorf("stats: %+v", s)
		}
		for _, c := range clients {
			w.end(c)
		}
	})
}

// A stream goes on over a cut, each item once and in order; when the session is lost it
// ends with the gap, and never looks whole.
func TestStream(t *testing.T) {
	const count = stream.Method[struct{}, int, int]("count")
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reg peer.Registry
				count.Handle(&reg, func(ctx context.Context, _ struct{}, send func(int) error) (int, error) {
					for i := range 1000 {
						time.Sleep(time.Millisecond)
						if err := send(i); err != nil {
							return i, err
						}
					}
					return 1000, nil
				})
				w := newWorld(t, &resume.Options{Park: 2 * time.Second}, &peer.Options{Handler: &reg})
				c := w.client(nil, nil)
				defer w.end(c)
				s := count.Call(t.Context(), c, struct{}{})
				next := 0
				for i, err := range s.All() {
					if err != nil {
						break
					}
					if i != next {
						t.Fatalf("item %d after %d", i, next-1)
					}
					if next++; next%50 == 0 {
						if lost && next == 500 {
							w.setDown(true)
						}
						w.cut()
					}
				}
				n, err := s.Result()
				var gap *resume.GapError
				switch {
				case lost && (!errors.As(err, &gap) || next < 500 || next == 1000 || errors.Is(err, io.EOF)):
					t.Errorf("%d items of a stream that was lost: %v", next, err)
				case !lost && (n != 1000 || err != nil || next != 1000):
					t.Errorf("%d items, %d, %v", next, n, err)
				}
			})
		})
	}
}

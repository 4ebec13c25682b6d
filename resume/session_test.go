package resume_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/stream"
	"github.com/duetrpc/duet/wsconn"
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

// An evicted session is gone at both ends: none goes on counting where the other begins.
func TestEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		add.Handle(&reg, sum)
		w := newWorld(t, &resume.Options{PrincipalParked: 1}, &peer.Options{Handler: &reg})
		done := map[*peer.Client]<-chan error{}
		connect := func(principal string) *peer.Client {
			w.principal = principal
			c := w.client(nil, nil)
			done[c] = call(c, "slow")
			<-started
			return c
		}
		a, b, other := connect("somebody"), connect("somebody"), connect("somebody else")
		defer w.end(a)
		defer w.end(b)
		defer w.end(other)
		w.setDown(true)
		for _, s := range w.all() {
			s.cut()
			synctest.Wait() // one after the other
		}
		stats := w.sessions.Stats()
		if stats.Parked != 2 || stats.Lost[resume.Evicted] != 1 {
			t.Errorf("with a share of one session each: %+v", stats)
		}
		w.setDown(false)
		var gap *resume.GapError
		err := <-done[a]
		if !errors.As(err, &gap) || gap.Reason != resume.Unknown {
			t.Errorf("the call of the evicted session: %v", err)
		}
		if got, err := add.Call(t.Context(), a, []int{1, 2}); got != 3 || err != nil {
			t.Errorf("after that: %d, %v", got, err)
		}
		for _, c := range []*peer.Client{b, other} {
			select {
			case err := <-done[c]:
				t.Errorf("another session lost its turn: %v", err)
			default:
			}
		}
	})
}

// Who parks more than others loses first, at the bound of all together.
func TestEvictsLargest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{Parked: 4}, nil)
		var clients []*peer.Client
		connect := func(principal string) {
			w.principal = principal
			c := w.client(nil, nil)
			if _, err := c.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
			time.Sleep(time.Second)
		}
		connect("one user")
		for range 5 {
			connect("a greedy one")
		}
		connect("another user")
		w.setDown(true)
		conns := w.allConns()
		for _, s := range w.all() {
			s.cut()
			synctest.Wait()
		}
		if s := w.sessions.Stats(); s.Parked != 4 || s.Lost[resume.Evicted] != 3 {
			t.Errorf("stats: %+v", s)
		}
		for _, i := range []int{0, 6} {
			if conns[i].Err() != nil {
				t.Errorf("another user lost a session to the greedy one: %v", conns[i].Err())
			}
		}
		for _, c := range clients {
			w.end(c)
		}
	})
}

// Bytes that are kept count as well.
func TestEvictsByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{PrincipalBytes: 1000}, nil)
		c := w.client(nil, nil)
		defer w.end(c)
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.setDown(true)
		conn := w.conn()
		w.socket().deafen()
		if err := conn.Notify(t.Context(), "n", []string{strings.Repeat("x", 2000)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.cut()
		<-conn.Done()
		var gap *resume.GapError
		if !errors.As(conn.Err(), &gap) || gap.Reason != resume.Evicted {
			t.Errorf("over the bytes of a principal: %v", conn.Err())
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
		}{{sent, pending.Sent}, {maybe, pending.MaybeSent}, {blocked, pending.MaybeSent}, {not, pending.NotSent}} {
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

// Shutdown waits for what is on its way to arrive, over another socket if need be.
func TestShutdownFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		var reg peer.Registry
		reg.HandleNotification("n", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { got.Add(1); return nil, nil }))
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.socket().deafen()
		for range 10 {
			if err := c.Notify(t.Context(), "n", nil); err != nil {
				t.Fatal(err)
			}
		}
		time.AfterFunc(10*time.Second, w.cut)
		conn := w.conn()
		if err := c.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		<-conn.Done()
		if got.Load() != 10 || conn.Err() != nil {
			t.Errorf("%d of 10 arrived, and the other end ended with %v", got.Load(), conn.Err())
		}
		if s := w.sessions.Stats(); s.Open != 0 {
			t.Errorf("after an orderly end: %+v", s)
		}
	})
}

// A session without a socket cannot be taken up from a server that shuts down, and so
// does not hold that up.
func TestShutdownEndsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		c := w.client(nil, nil)
		defer w.end(c)
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.setDown(true)
		w.cut()
		synctest.Wait()
		acks := w.transport().(interface{ GoingAway() }) // what Server.Shutdown calls
		acks.GoingAway()
		<-w.conn().Done()
		var gap *resume.GapError
		if err := w.conn().Err(); !errors.As(err, &gap) || gap.Reason != resume.Stopped {
			t.Errorf("ended with %v", err)
		}
	})
}

// A server that shuts down keeps no session that loses its socket meanwhile.
func TestLostWhileGoingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		c := w.client(nil, nil)
		defer w.end(c)
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.transport().(interface{ GoingAway() }).GoingAway()
		synctest.Wait()
		conn := w.conn()
		if conn.Context().Err() != nil {
			t.Fatalf("a session with a socket ended at once: %v", context.Cause(conn.Context()))
		}
		w.setDown(true)
		w.cut()
		<-conn.Done()
		var gap *resume.GapError
		if err := conn.Err(); !errors.As(err, &gap) || gap.Reason != resume.Stopped {
			t.Errorf("ended with %v", err)
		}
	})
}

// An end that shuts down and hears that the other one goes away does not dial again.
func TestGoingAwayWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		c := w.client(nil, nil)
		defer w.end(c)
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.socket().deafen()
		_ = c.Notify(t.Context(), "n", nil)
		time.AfterFunc(time.Second, func() { _ = w.far().Close(wsconn.ErrGoingAway) })
		began := time.Now()
		_ = c.Shutdown(t.Context())
		if took := time.Since(began); took != time.Second {
			t.Errorf("Shutdown took %v", took)
		}
		if sockets, _ := w.count(); sockets != 1 {
			t.Errorf("%d sockets", sockets)
		}
	})
}

// A session over which nothing was ever sent is one all the same.
func TestIdleGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		c := w.client(nil, nil)
		defer w.end(c)
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
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

// What a socket ended with decides whether its session goes on.
func TestCloseCodes(t *testing.T) {
	for _, test := range []struct {
		code   int
		resume bool
	}{
		{1000, false}, {1001, true}, {1002, false}, {1003, false}, {1005, false}, {1006, true}, {1007, false}, {1008, false}, {1009, false},
		{1010, false}, {1011, true}, {1012, true}, {1013, true}, {1014, false}, {3000, false}, {4000, false}, {4102, false},
	} {
		for _, accepting := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d accepting=%v", test.code, accepting), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, nil, nil)
					c := w.client(nil, nil)
					defer w.end(c)
					if _, err := c.Conn(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					first := w.conn()
					socket := w.socket()
					if accepting {
						socket = w.far()
					}
					_ = socket.Close(&wsconn.CloseError{Code: test.code})
					time.Sleep(5 * time.Second)
					_, conns := w.count()
					if resumed := conns == 1 && first.Context().Err() == nil; resumed != test.resume {
						t.Errorf("%d connections, the first %v: goes on %v, want %v", conns, context.Cause(first.Context()), resumed, test.resume)
					}
					if conn, err := c.Conn(t.Context()); err != nil || conn.Notify(t.Context(), "n", nil) != nil {
						t.Errorf("no connection after that: %v", err)
					}
				})
			})
		}
	}
}

// An orderly end of the connection is one at both ends, whatever its code, and so is a
// message that kills the socket: it is not sent for ever.
func TestEndsAtBothEnds(t *testing.T) {
	for name, test := range map[string]struct {
		cause   error
		orderly bool
	}{
		"Close":      {nil, true},
		"going away": {wsconn.ErrGoingAway, true},
		"restart":    {wsconn.ErrServiceRestart, false},
		"too big":    {wsconn.ErrMessageTooBig, false},
		"not UTF-8":  {wsconn.ErrInvalidUTF8, false},
		"internal":   {errors.New("something"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, nil)
				c := w.client(nil, nil)
				defer w.end(c)
				conn, err := c.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				there := w.conn()
				_ = w.transport().Close(test.cause)
				<-conn.Done()
				<-there.Done()
				if orderly := conn.Err() == nil; orderly != test.orderly {
					t.Errorf("the other end ended with %v", conn.Err())
				}
				var want, got *wsconn.CloseError
				if errors.As(test.cause, &want) && (!errors.As(conn.Err(), &got) || got.Code != want.Code) {
					t.Errorf("the other end ended with %v, want %v", conn.Err(), want)
				}
				if gap := new(resume.GapError); errors.As(conn.Err(), &gap) {
					t.Errorf("an end that was meant looks like a gap: %v", gap)
				}
			})
		})
	}
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

// raw is the dialling end of the protocol, by hand.
func (w *world) raw() *peertest.Raw {
	t, _ := w.dial(w.principal)
	return peertest.NewRaw(w.t, t)
}

// opened begins a session by hand, and returns its id.
func opened(t *testing.T, r *peertest.Raw) string {
	t.Helper()
	r.Send("open")
	words := strings.Fields(r.Receive())
	if len(words) != 3 || words[0] != "opened" || len(words[1]) != 32 || words[2] != "120000" {
		t.Fatalf("opened with %q", words)
	}
	r.Send("ack 0")
	return words[1]
}

// closed wants a raw end to be closed with a code.
func closed(t *testing.T, r *peertest.Raw, code int) {
	t.Helper()
	var end *wsconn.CloseError
	if err := r.Ended(); !errors.As(err, &end) || end.Code != code {
		t.Errorf("closed with %v, want %d", err, code)
	}
}

func note(n int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":[%d]}`, n) }

// notes is a connection's handler that counts what it gets.
func notes() (*peer.Options, func() []int) {
	var reg peer.Registry
	got := make(chan int, 1000)
	var all []int
	peer.Notification[[]int]("n").Handle(&reg, func(_ context.Context, in []int) error { got <- in[0]; return nil })
	return &peer.Options{Handler: &reg}, func() []int {
		for {
			select {
			case n := <-got:
				all = append(all, n)
			default:
				return all
			}
		}
	}
}

func TestClaims(t *testing.T) {
	// Each has a session with 3 messages from the dialling end, of which it knows 3, and 2
	// from the accepting end.
	for _, test := range []struct {
		name      string
		principal string
		line      string // ID stands for the id
		code      int    // 0: is resumed
		lives     bool   // whether the session does after that
	}{
		{"as it should be", "somebody", "resume ID 1 2", 0, true},
		{"with less", "somebody", "resume ID 1 1", 0, true},
		{"of another principal", "somebody else", "resume ID 1 2", 4102, true},
		{"of nobody", "", "resume ID 1 2", 4102, true},
		{"another id", "somebody", "resume 00000000000000000000000000000000 1 2", 4102, true},
		{"an upper case id", "somebody", "resume UPPER 1 2", 4102, true},
		{"a count from the future", "somebody", "resume ID 1 3", 4102, false},
		{"a count from the past", "somebody", "resume ID 1 0", 4102, false},
		{"a handshake from the past", "somebody", "resume ID 0 2", 4101, true},
		{"a short id", "somebody", "resume 00 1 2", 1002, true},
		{"a count too few", "somebody", "resume ID 1", 1002, true},
		{"a count too many", "somebody", "resume ID 1 2 3", 1002, true},
		{"a leading zero", "somebody", "resume ID 01 2", 1002, true},
		{"a negative count", "somebody", "resume ID 1 -1", 1002, true},
		{"a huge count", "somebody", "resume ID 1 9223372036854775808", 1002, true},
		{"an endless count", "somebody", "resume ID 1 " + strings.Repeat("9", 100), 1002, true},
		{"two spaces", "somebody", "resume  ID 1 2", 1002, true},
		{"another word", "somebody", "reopen ID 1 2", 1002, true},
		{"no handshake", "somebody", note(4), 1002, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, got := notes()
				w := newWorld(t, nil, opts)
				r := w.raw()
				id := opened(t, r)
				r.Send(note(1), note(2), note(3))
				synctest.Wait()
				conn := w.conn()
				for i := range 2 {
					if err := conn.Notify(t.Context(), "n", []int{i}); err != nil {
						t.Fatal(err)
					}
				}
				r.Want(note(0), note(1))
				r.Send("ack 1")
				r.Want("ack 3")
				w.cut()
				synctest.Wait()

				w.principal = test.principal
				again := w.raw()
				again.Send(strings.NewReplacer("ID", id, "UPPER", strings.ToUpper(id)).Replace(test.line))
				if test.code != 0 {
					closed(t, again, test.code)
				} else {
					again.Want("resumed 3")
					if strings.HasSuffix(test.line, " 1") {
						again.Want(note(1))
					}
					again.Send(note(4))
					synctest.Wait()
					if all := got(); len(all) != 4 || all[3] != 4 {
						t.Errorf("arrived: %v", all)
					}
					if s := w.sessions.Stats(); s.Parked != 0 || s.Resumed != 1 {
						t.Errorf("stats: %+v", s)
					}
				}
				synctest.Wait()
				if lives := conn.Context().Err() == nil; lives != test.lives {
					t.Errorf("the session lives: %v, want %v (%v)", lives, test.lives, conn.Err())
				}
				_ = conn.Close()
				<-conn.Done()
			})
		})
	}
}

// Of two sockets that claim one session the newer wins, and the older is closed with its own
// code. A handshake that is heard a second time is not heeded.
func TestNewerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, got := notes()
		w := newWorld(t, nil, opts)
		first := w.raw()
		id := opened(t, first)
		first.Send(note(1))
		synctest.Wait()
		conn := w.conn()

		second := w.raw()
		second.Send("resume " + id + " 1 0")
		second.Want("resumed 1")
		closed(t, first, 4101)

		third := w.raw()
		third.Send("resume " + id + " 2 0")
		third.Want("resumed 1")
		closed(t, second, 4101)

		again := w.raw()
		again.Send("resume " + id + " 1 0")
		closed(t, again, 4101)
		again = w.raw()
		again.Send("resume " + id + " 2 0")
		closed(t, again, 4101)

		third.Send(note(2))
		synctest.Wait()
		if all := got(); len(all) != 2 || conn.Err() != nil {
			t.Errorf("arrived: %v, %v", all, conn.Err())
		}
		if s := w.sessions.Stats(); s.Open != 1 || s.Parked != 0 || s.Resumed != 2 || s.Refused != 2 {
			t.Errorf("stats: %+v", s)
		}
		_ = conn.Close()
		closed(t, third, 1000)
		<-conn.Done()
	})
}

// A second loss in the middle of what is sent again loses nothing: the third handshake
// tells anew what is missing.
func TestLostWhileSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		r := w.raw()
		id := opened(t, r)
		synctest.Wait()
		conn := w.conn()
		for i := range 5 {
			_ = conn.Notify(t.Context(), "n", []int{i})
		}
		r.Want(note(0), note(1)) // and the rest is lost
		w.cut()
		r = w.raw()
		r.Send("resume " + id + " 1 2")
		r.Want("resumed 0", note(2), note(3))
		w.cut()
		_ = conn.Notify(t.Context(), "n", []int{5}) // meanwhile
		synctest.Wait()
		r = w.raw()
		r.Send("resume " + id + " 2 4")
		r.Want("resumed 0", note(4), note(5))
		synctest.Wait()
		if more := r.Waiting(); len(more) != 0 {
			t.Errorf("and %q", more)
		}
		_ = conn.Close()
		<-conn.Done()
	})
}

// What the other end may not say ends the session at both ends.
func TestBroken(t *testing.T) {
	for _, text := range []string{"ack 3", "ack 0", "ack", "ack 02", "ack -1", "ack 1 1", "open", "resumed 0", "x", "true"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, nil)
				r := w.raw()
				_ = opened(t, r)
				synctest.Wait()
				conn := w.conn()
				_ = conn.Notify(t.Context(), "n", []int{0})
				_ = conn.Notify(t.Context(), "n", []int{1})
				r.Want(note(0), note(1))
				r.Send("ack 1")
				r.Send(text)
				closed(t, r, 1002)
				<-conn.Done()
				var gap *resume.GapError
				if !errors.As(conn.Err(), &gap) || gap.Reason != resume.Broken {
					t.Errorf("ended with %v", conn.Err())
				}
				if s := w.sessions.Stats(); s.Open != 0 || s.Lost[resume.Broken] != 1 {
					t.Errorf("stats: %+v", s)
				}
			})
		})
	}
}

// An end that says nothing, or never confirms, holds nothing for long.
func TestSilentHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		r := w.raw()
		closed(t, r, 1008)
		r = w.raw()
		r.Send("open")
		r.Receive()
		w.cut()
		synctest.Wait()
		if s := w.sessions.Stats(); s.Parked != 1 {
			t.Errorf("stats: %+v", s)
		}
		time.Sleep(11 * time.Second)
		if s := w.sessions.Stats(); s.Open != 0 || s.Parked != 0 {
			t.Errorf("a session nobody knows of is kept: %+v", s)
		}
		<-w.conn().Done()
	})
}

// What is acknowledged, and when.
func TestAcknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := notes()
		w := newWorld(t, nil, opts)
		r := w.raw()
		_ = opened(t, r)
		r.Send(note(0))
		began := time.Now()
		r.Want("ack 1")
		if took := time.Since(began); took != 20*time.Millisecond {
			t.Errorf("one message was acknowledged after %v", took)
		}
		began = time.Now()
		for i := range 256 {
			r.Send(note(i))
		}
		r.Want("ack 257")
		if took := time.Since(began); took != 0 {
			t.Errorf("256 messages were acknowledged after %v", took)
		}
		for range 40 {
			r.Send(note(0))
		}
		synctest.Wait()
		_ = w.conn().Notify(t.Context(), "n", []int{7})
		r.Want("ack 297", note(7)) // with what goes anyway
		r.Send("ack 1")
		began = time.Now()
		r.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":[1],"x":%q}`, strings.Repeat("x", 256<<10)))
		r.Want("ack 298")
		if took := time.Since(began); took != 0 {
			t.Errorf("256 KiB were acknowledged after %v", took)
		}
		time.Sleep(time.Minute)
		if more := r.Waiting(); len(more) != 0 {
			t.Errorf("and %q", more)
		}
		_ = w.conn().Close()
		<-w.conn().Done()
	})
}

// A socket over which nothing is acknowledged is given up, and the next handshake tells.
func TestStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{Buffer: 4 << 10}, nil)
		r := w.raw()
		id := opened(t, r)
		synctest.Wait()
		conn := w.conn()
		raw, _ := json.Marshal([]string{strings.Repeat("x", 3000)})
		for range 3 {
			_ = conn.Notify(t.Context(), "n", json.RawMessage(raw))
		}
		r.Receive()
		began := time.Now()
		time.Sleep(59 * time.Second)
		closed(t, r, 1013)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("given up after %v", took)
		}
		r = w.raw()
		r.Send("resume " + id + " 1 1")
		r.Want("resumed 0")
		r.Receive()
		r.Send("ack 2")
		r.Receive()
		r.Send("ack 3")
		_ = conn.Close()
		<-conn.Done()
	})
}

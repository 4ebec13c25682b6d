package resume_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/wsconn"
)

// Shutdown waits for what is on its way to arrive, over another socket if need be.
func TestShutdownFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		var reg peer.Registry
		reg.HandleNotification("n", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { got.Add(1); return nil, nil }))
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c, _ := w.connected()
		defer w.end(c)
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
		c, _ := w.connected()
		defer w.end(c)
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
		c, _ := w.connected()
		defer w.end(c)
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
		c, _ := w.connected()
		defer w.end(c)
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

// What a socket ended with decides whether its session goes on.
func TestCloseCodes(t *testing.T) {
	for _, test := range []struct {
		code   int
		resume bool
	}{
		{1000, false}, {1001, true}, {1002, false}, {1003, false}, {1005, false}, {1006, true}, {1007, false}, {1008, false}, {1009, false},
		{1010, false}, {1011, true}, {1012, true}, {1013, true}, {1014, false}, {3000, false}, {4000, false}, {4102, false}, {4103, true},
	} {
		for _, accepting := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d accepting=%v", test.code, accepting), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, nil, nil)
					c, _ := w.connected()
					defer w.end(c)
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
				c, conn := w.connected()
				defer w.end(c)
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

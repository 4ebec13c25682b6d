package peer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

// An idempotent call whose request is over the other end's limit kills one
// connection after the other.
func TestClientPoisonRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := methods{"m": answers(1), "hang": hangs}.options()
		o.Limits.MessageBytes = 4 << 10
		x := &exchange{t: t, opts: o}
		c := x.client(peer.ClientOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if c.Call(ctx, "m", []string{string(make([]byte, 64<<10))}, nil, peer.Idempotent()) == nil {
			t.Error("it was answered")
		}
		if n := len(x.dialled()); n > 3 {
			t.Errorf("one call was sent %d times, and killed as many connections", n)
		}
	})
}

// The same with an answer over this end's limit: the handler runs for ever.
func TestClientPoisonAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		x := &exchange{t: t, opts: methods{"big": func(context.Context, *peer.Request) (any, error) {
			ran.Add(1)
			return string(make([]byte, 64<<10)), nil
		}}.options()}
		o := peer.ClientOptions{}
		o.Limits.MessageBytes = 4 << 10
		c := x.client(o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if c.Call(ctx, "big", nil, nil, peer.Idempotent()) == nil {
			t.Error("it was answered")
		}
		if n := ran.Load(); n > 3 {
			t.Errorf("the handler ran %d times", n)
		}
	})
}

// "Where the call was made more than once, Sent is of the attempt that got furthest."
func TestClientSentFurthest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"hang": hangs}.options()}
		x.wrap = func(n int, tr peer.Transport) (peer.Transport, error) {
			if n == 2 {
				tr, _ = gated(tr)
			}
			return tr, nil
		}
		c := x.client(peer.ClientOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(time.Second, func() { _ = x.last().Close() })
		err := c.Call(ctx, "hang", nil, nil, peer.Idempotent())
		wantSent(t, err, pending.Sent) // the first attempt was
	})
}

// The first was sent, the second maybe, the third not at all.
func TestClientSentFurthestOfThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"hang": hangs}.options()}
		x.hold = func(_ context.Context, n int) error {
			if n > 2 {
				return errRefused
			}
			return nil
		}
		x.wrap = func(n int, tr peer.Transport) (peer.Transport, error) {
			if n == 2 {
				tr, _ = gated(tr)
			}
			return tr, nil
		}
		c := x.client(peer.ClientOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(time.Second, func() { _ = x.last().Close() })
		time.AfterFunc(5*time.Second, func() { _ = x.last().Close() })
		err := c.Call(ctx, "hang", nil, nil, peer.Idempotent())
		wantSent(t, err, pending.Sent)
	})
}

// A call that was given up by CancelBy is made again on the next connection.
func TestClientCancelByAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		x := &exchange{t: t, opts: methods{"deaf": func(context.Context, *peer.Request) (any, error) {
			ran.Add(1)
			time.Sleep(5 * time.Second)
			return nil, nil
		}}.options()}
		c := x.client(peer.ClientOptions{})
		by, give := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, give)
		time.AfterFunc(2*time.Second, func() { _ = x.last().Close() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if c.Call(ctx, "deaf", nil, nil, peer.Idempotent(), peer.CancelBy(by)) == nil {
			t.Error("it was answered")
		}
		if n := ran.Load(); n != 1 {
			t.Errorf("a call that was given up ran %d times", n)
		}
	})
}

// A handler of a notification that calls through the Client while OnConnect runs holds
// up the answer OnConnect waits for.
func TestClientGreetingHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"hello": func(ctx context.Context, req *peer.Request) (any, error) {
			_ = req.Conn.Notify(ctx, "welcome", nil)
			return nil, nil
		}, "m": answers(1)}.options()}
		var c *peer.Client
		made := make(chan struct{})
		o := peer.ClientOptions{Options: *methods{"welcome": func(ctx context.Context, _ *peer.Request) (any, error) {
			<-made
			err := c.Call(ctx, "m", nil, nil)
			if err == nil {
				t.Error("a call of a handler went out before OnConnect had returned")
			}
			return nil, err
		}}.options(), OnConnect: func(ctx context.Context, conn *peer.Conn) error {
			return conn.Call(ctx, "hello", nil, nil)
		}}
		began := time.Now()
		c = x.client(o)
		close(made)
		if err := c.Call(t.Context(), "m", nil, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v to connect", took)
		}
	})
}

// The same with a callback in place of a notification.
func TestClientGreetingCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"hello": func(ctx context.Context, req *peer.Request) (any, error) {
			return nil, req.Conn.Call(ctx, "who", nil, nil)
		}, "m": answers(1)}.options()}
		var c *peer.Client
		made := make(chan struct{})
		o := peer.ClientOptions{Options: *methods{"who": func(ctx context.Context, _ *peer.Request) (any, error) {
			<-made
			if c.Call(ctx, "m", nil, nil) == nil {
				t.Error("a call of a handler went out before OnConnect had returned")
			}
			return 1, nil
		}}.options(), OnConnect: func(ctx context.Context, conn *peer.Conn) error {
			return conn.Call(ctx, "hello", nil, nil)
		}}
		began := time.Now()
		c = x.client(o)
		close(made)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Call(ctx, "m", nil, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v to connect", took)
		}
	})
}

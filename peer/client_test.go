package peer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/wsconn"
)

var _ peer.Caller = (*peer.Client)(nil)

// exchange is the other end of a Client: every dial makes a peer. It is set up before the
// Client, and asked after.
type exchange struct {
	t    *testing.T
	opts *peer.Options                                         // of its peers
	hold func(ctx context.Context, n int) error                // before dial n, from 1, has its answer
	take func(n int, t peer.Transport)                         // in place of a peer
	wrap func(n int, t peer.Transport) (peer.Transport, error) // the Client's end

	broken peer.Transport // for take to keep

	mu    sync.Mutex
	dials []time.Time
	conns []*peer.Conn
}

var errRefused = errors.New("refused")

func (x *exchange) dial(ctx context.Context) (peer.Transport, error) {
	x.mu.Lock()
	x.dials = append(x.dials, time.Now())
	n := len(x.dials)
	x.mu.Unlock()
	if x.hold != nil {
		if err := x.hold(ctx, n); err != nil {
			return nil, err
		}
	}
	a, b := peer.Pipe()
	if x.take != nil {
		x.take(n, a)
	} else {
		conn := peertest.Start(x.t, a, x.opts)
		x.mu.Lock()
		x.conns = append(x.conns, conn)
		x.mu.Unlock()
	}
	if x.wrap != nil {
		return x.wrap(n, b)
	}
	return b, nil
}

// dialled is when the dials were.
func (x *exchange) dialled() []time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.dials)
}

// last is the peer of the last connection.
func (x *exchange) last() *peer.Conn {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conns[len(x.conns)-1]
}

// client starts a Client of x. At the end of the test it is closed, and has to be done.
func (x *exchange) client(opts peer.ClientOptions) *peer.Client {
	x.t.Helper()
	if opts.Dial == nil {
		opts.Dial = x.dial
	}
	c, err := peer.NewClient("", &opts)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		_ = c.Close()
		select {
		case <-c.Done():
		case <-time.After(time.Minute):
			x.t.Error("the client does not end")
		}
	})
	return c
}

// states collects the states of a Client.
type states struct {
	mu  sync.Mutex
	all []peer.ClientState
}

func (l *states) add(s peer.ClientState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *states) list() []peer.ClientState {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// phases are those of the states.
func (l *states) phases() (all []peer.ClientPhase) {
	for _, s := range l.list() {
		all = append(all, s.Phase)
	}
	return all
}

func wantPhases(t *testing.T, l *states, want ...peer.ClientPhase) {
	t.Helper()
	if got := l.phases(); !slices.Equal(got, want) {
		t.Errorf("phases %v, want %v", got, want)
	}
}

// clientDone reports whether c has come to its end.
func clientDone(c *peer.Client) bool {
	synctest.Wait()
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// A Client connects by itself, and again after an end of either kind; the states tell.
func TestClientStaysConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"m": answers(1)}.options()}
		var l states
		c := x.client(peer.ClientOptions{OnState: l.add})
		began := time.Now()
		synctest.Wait()
		wantTook(t, "the first attempt", began, 0)
		_ = x.last().Close() // in order
		time.Sleep(time.Minute)
		if err := c.Call(t.Context(), "m", nil, nil); err != nil {
			t.Error(err)
		}
		_ = c.Close()
		if !clientDone(c) || c.Err() != nil {
			t.Errorf("after Close the client is not done, or Err = %v", c.Err())
		}
		wantPhases(t, &l, peer.Dialling, peer.Connected, peer.Disconnected, peer.Dialling, peer.Connected, peer.Ended)
		all := l.list()
		if s := all[2]; !errors.Is(s.Err, io.EOF) || s.Wait < 0 || s.Wait > 500*time.Millisecond {
			t.Errorf("%v, want the orderly end of the other end and the pause", s)
		}
		if all[0].Attempt != 1 || all[3].Attempt != 1 || all[5].Err != nil {
			t.Errorf("states %v", all)
		}
	})
}

// Calls that are made while there is no connection wait, go out after OnConnect, and have
// one connection made for all of them.
func TestClientGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 100
		var mu sync.Mutex
		var got []string
		noting := func(_ context.Context, req *peer.Request) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, req.Method)
			return nil, nil
		}
		x := &exchange{t: t, opts: methods{"hello": noting, "m": noting, "n": noting}.options()}
		c := x.client(peer.ClientOptions{OnConnect: func(ctx context.Context, conn *peer.Conn) error {
			time.Sleep(time.Second) // they wait for this, too
			return conn.Call(ctx, "hello", nil, nil)
		}})
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = x.last().Close()
		synctest.Wait()
		var calls sync.WaitGroup
		for range waiters {
			calls.Go(func() {
				if err := errors.Join(c.Call(t.Context(), "m", nil, nil), c.Notify(t.Context(), "n", nil)); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 2+2*waiters || got[0] != "hello" || got[1] != "hello" {
			t.Errorf("%d requests, beginning with %q; want hello twice and then %d others", len(got), got[:min(3, len(got))], 2*waiters)
		}
		if n := len(x.dialled()); n != 2 {
			t.Errorf("%d dials for two connections", n)
		}
	})
}

// Who waits is bounded by its own context and learns why there is no connection; the
// attempt goes on without it.
func TestClientWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		x := &exchange{t: t, opts: methods{"m": answers(1)}.options()}
		x.hold = func(ctx context.Context, n int) error {
			if n == 1 {
				return &wsconn.DialError{URL: "ws://here/", Status: 503, Err: errRefused}
			}
			select {
			case <-open:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		c := x.client(peer.ClientOptions{DialTimeout: time.Hour})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Conn(ctx)
		wantTook(t, "Conn", began, time.Second)
		for what, err := range map[string]error{
			"Conn": err, "Call": c.Call(ctx, "m", nil, nil), "Notify": c.Notify(ctx, "m", nil),
		} {
			var dial *wsconn.DialError
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errRefused) || !errors.As(err, &dial) || dial.Status != 503 {
				t.Errorf("%s = %v, want the end of the context and the last *DialError", what, err)
			}
		}
		wantSent(t, c.Call(ctx, "m", nil, nil), 0)
		close(open)
		if err := c.Call(t.Context(), "m", nil, nil); err != nil {
			t.Error(err)
		}
		if n := len(x.dialled()); n != 2 {
			t.Errorf("%d dials, want 2: the one that failed, and the one nobody stopped", n)
		}
	})
}

// What a server answered to OnConnect is no answer to the calls that waited.
func TestClientGapIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"hello": func(context.Context, *peer.Request) (any, error) {
			return nil, &peer.Error{Code: 7, Message: "no"}
		}}.options()}
		asked := make(chan error, 100)
		c := x.client(peer.ClientOptions{
			OnConnect: func(ctx context.Context, conn *peer.Conn) error {
				return errors.Join(conn.Call(ctx, "hello", nil, nil), context.Canceled)
			},
			GiveUp: func(err error) bool { asked <- err; return len(asked) == 5 },
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := c.Call(ctx, "m", nil, nil)
		var answer *peer.Error
		if errors.As(err, &answer) || errors.Is(err, &peer.Error{Code: 7}) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("Call = %v, want the end of the context and no answer", err)
		}
		if err := <-asked; !errors.Is(err, &peer.Error{Code: 7}) {
			t.Errorf("GiveUp was asked with %v, want the answer", err)
		}
		<-c.Done()
		if err := c.Call(t.Context(), "m", nil, nil); errors.As(err, &answer) || !errors.Is(c.Err(), &peer.Error{Code: 7}) {
			t.Errorf("Call = %v, Err = %v; want no answer in the one and that in the other", err, c.Err())
		}
		if n := len(x.dialled()); n != 6 {
			t.Errorf("%d dials, want 6: GiveUp held five errors then, and one was taken out", n)
		}
		for _, conn := range x.conns {
			if !isDone(conn) {
				t.Error("a connection lives on whose OnConnect failed")
			}
		}
	})
}

// The other end's notifications arrive again by what OnConnect asked for again, though
// nobody calls.
func TestClientSubscribesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"subscribe": func(ctx context.Context, req *peer.Request) (any, error) {
			conn := req.Conn
			time.AfterFunc(time.Second, func() { _ = conn.Notify(context.Background(), "news", nil) })
			return nil, nil
		}}.options()}
		var news atomic.Int32
		opts := methods{"news": func(context.Context, *peer.Request) (any, error) { news.Add(1); return nil, nil }}.options()
		x.client(peer.ClientOptions{Options: *opts, OnConnect: func(ctx context.Context, conn *peer.Conn) error {
			return conn.Call(ctx, "subscribe", nil, nil)
		}})
		for i := range int32(3) {
			time.Sleep(time.Minute)
			if n := news.Load(); n != i+1 {
				t.Fatalf("%d notifications over %d connections", n, i+1)
			}
			_ = x.last().Close()
		}
	})
}

// An OnConnect that does not end is given up; what it began lives as long as the connection.
func TestClientOnConnectHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"m": answers(1), "hang": hangs}.options()}
		ended := make(chan error, 1)
		var l states
		c := x.client(peer.ClientOptions{OnState: l.add, DialTimeout: time.Minute, OnConnect: func(ctx context.Context, conn *peer.Conn) error {
			if len(x.dialled()) == 1 {
				return conn.Call(ctx, "hang", nil, nil)
			}
			go func() { <-ctx.Done(); ended <- context.Cause(ctx) }()
			return nil
		}})
		began := time.Now()
		if err := c.Call(t.Context(), "m", nil, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("a connection was there after %v", took)
		}
		if failed := l.list()[1]; failed.Phase != peer.DialFailed || !errors.Is(failed.Err, context.DeadlineExceeded) {
			t.Errorf("state %v, want that OnConnect did not return", failed)
		}
		time.Sleep(time.Hour)
		select {
		case err := <-ended:
			t.Errorf("what OnConnect began ended with %v", err)
		default:
		}
		_ = c.Close()
		if err := <-ended; !errors.Is(err, peer.ErrClosed) {
			t.Errorf("what OnConnect began ended with %v, want ErrClosed", err)
		}
	})
}

// A call of the Client in OnConnect, which waits for itself, says so; with a context of
// somebody else it lasts no longer than OnConnect may.
func TestClientCallsInOnConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"m": answers(1)}.options()}
		inside := make(chan error, 2)
		var c *peer.Client
		made := make(chan struct{})
		c = x.client(peer.ClientOptions{OnConnect: func(ctx context.Context, conn *peer.Conn) error {
			<-made
			inside <- c.Call(ctx, "m", nil, nil)
			later := context.WithoutCancel(ctx)
			go func() {
				<-conn.Context().Done()
				inside <- c.Call(later, "m", nil, nil) // which is no more inside
			}()
			return nil
		}})
		close(made)
		if err := <-inside; err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call in OnConnect = %v, want an error that says so", err)
		} else {
			wantSent(t, err, 0)
		}
		synctest.Wait()
		_ = x.last().Close()
		// The second OnConnect puts its own error in.
		for range 2 {
			if err := <-inside; err == nil {
				return
			}
		}
		t.Error("a call after OnConnect, with its context, fails")
	})
}

func TestClientOptions(t *testing.T) {
	dial := func(context.Context) (peer.Transport, error) { return nil, errRefused }
	for name, opts := range map[string]*peer.ClientOptions{
		"Limits.Pending":      {Options: peer.Options{Limits: peer.Limits{Pending: -1}}, Dial: dial},
		"WebSocket.ReadLimit": {Options: peer.Options{WebSocket: wsconn.Options{ReadLimit: 1}}, Dial: dial},
		"FirstWait":           {FirstWait: -1, Dial: dial},
		"MaxWait":             {FirstWait: 2, MaxWait: 1, Dial: dial},
		"DialTimeout":         {DialTimeout: -1, Dial: dial},
	} {
		var bad *peer.OptionError
		if _, err := peer.NewClient("", opts); !errors.As(err, &bad) || bad.Field != name {
			t.Errorf("NewClient = %v, want an *OptionError for %s", err, name)
		}
	}
	for _, url := range []string{"", "localhost", "ftp://host/", "ws://user:secret@host:x/"} {
		var bad *wsconn.DialError
		if _, err := peer.NewClient(url, nil); !errors.As(err, &bad) || bad.Status != 0 {
			t.Errorf("NewClient(%q) = %v, want a *DialError", url, err)
		}
	}
	for want, s := range map[string]fmt.Stringer{
		"dialling, attempt 3":                         peer.ClientState{Phase: peer.Dialling, Attempt: 3},
		"dial failed, attempt 3, next in 1s: refused": peer.ClientState{Phase: peer.DialFailed, Attempt: 3, Wait: time.Second, Err: errRefused},
		"ended":         peer.Ended,
		"unknown phase": peer.Ended + 1,
	} {
		if got := s.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}

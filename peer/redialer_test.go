package peer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// Clients that lose their connections in one instant come back spread over all of
// FirstWait, none of them at once.
func TestRedialFullJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, first = 200, time.Second
		all := make([]*exchange, clients)
		for i := range all {
			all[i] = &exchange{t: t}
			all[i].client(peer.ClientOptions{FirstWait: first})
		}
		synctest.Wait()
		lost := time.Now()
		for _, x := range all {
			_ = x.last().Close()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var tenths [10]int
		for _, x := range all {
			after := x.dialled()[1].Sub(lost)
			if after < 0 || after >= first {
				t.Fatalf("a client came back after %v", after)
			}
			tenths[after*10/first]++
		}
		for _, n := range tenths { // 20 are expected; these bounds fail once in 10^8 runs
			if n == 0 || n > 60 {
				t.Errorf("of %d clients came back in each tenth of a second: %v", clients, tenths)
				break
			}
		}
	})
}

// Pauses between attempts that fail grow up to MaxWait, and none is longer.
func TestRedialPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, attempts, first, most = 60, 10, time.Second, 20 * time.Second
		refuse := func(context.Context, int) error { return errRefused }
		var longest [attempts]time.Duration
		all := make([]*exchange, clients)
		for i := range all {
			all[i] = &exchange{t: t, hold: refuse}
			all[i].client(peer.ClientOptions{FirstWait: first, MaxWait: most})
		}
		time.Sleep(attempts * most)
		synctest.Wait()
		for _, x := range all {
			dials := x.dialled()
			for i := range longest {
				longest[i] = max(longest[i], dials[i+1].Sub(dials[i]))
			}
		}
		for i, got := range longest {
			bound := min(first<<i, most)
			if got > bound || got < bound/2 { // of sixty, one is over half: it fails once in 10^17 runs
				t.Errorf("pause %d took up to %v, want up to %v", i+1, got, bound)
			}
		}
	})
}

// A server that takes connections and drops them at once, or in OnConnect, is dialled no
// more often than one that takes none.
func TestRedialDropped(t *testing.T) {
	hello := func(ctx context.Context, conn *peer.Conn) error { return conn.Call(ctx, "hello", nil, nil) }
	for name, onConnect := range map[string]func(context.Context, *peer.Conn) error{"": nil, "OnConnect": hello} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &exchange{t: t, take: func(_ int, tr peer.Transport) { _ = tr.Close(nil) }}
				x.client(peer.ClientOptions{OnConnect: onConnect})
				time.Sleep(time.Hour)
				synctest.Wait()
				// 15 s on the average, after the first ones.
				if n := len(x.dialled()); n < 150 || n > 350 {
					t.Errorf("%d dials within an hour", n)
				}
			})
		})
	}
}

// The pauses begin anew after a connection that lived for ten times FirstWait, and not
// before.
func TestRedialBeginsAnew(t *testing.T) {
	for _, test := range []struct {
		lived time.Duration
		anew  bool
	}{{4 * time.Second, false}, {6 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			const clients, failures = 40, 12
			all := make([]*exchange, clients)
			for i := range all {
				all[i] = &exchange{t: t, hold: func(_ context.Context, n int) error {
					if n <= failures {
						return errRefused
					}
					return nil
				}}
				x := all[i]
				first := true
				x.client(peer.ClientOptions{OnState: func(s peer.ClientState) {
					if s.Phase == peer.Connected && first {
						first = false
						time.AfterFunc(test.lived, func() { _ = x.last().Close() })
					}
				}})
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			var longest time.Duration
			for _, x := range all {
				dials := x.dialled()
				longest = max(longest, dials[failures+1].Sub(dials[failures])-test.lived)
			}
			if anew := longest <= 500*time.Millisecond; anew != test.anew {
				t.Errorf("after a connection of %v the pause took up to %v", test.lived, longest)
			}
		})
	}
}

// socketed is a Transport over one socket after the other, as a session makes it.
type socketed struct {
	d      *peer.Redialer
	ctx    context.Context
	cancel context.CancelFunc
	now    peer.Transport // of the reader; these tests do not write meanwhile
}

func session(ctx context.Context, d *peer.Redialer) (peer.Transport, error) {
	t, err := d.Dial(ctx, nil)
	if err != nil {
		return nil, err
	}
	s := &socketed{d: d, now: t}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

func (s *socketed) Read(ctx context.Context, buf []byte) ([]byte, error) {
	for {
		msg, err := s.now.Read(ctx, buf)
		if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
			return msg, err
		}
		next, err := s.d.Dial(s.ctx, err)
		if err != nil {
			return nil, err
		}
		s.now = next
		s.d.Resumed()
	}
}

func (s *socketed) Write(ctx context.Context, msgs ...[]byte) error { return s.now.Write(ctx, msgs...) }

func (s *socketed) Close(err error) error {
	s.cancel()
	return s.now.Close(err)
}

// A session outlives its sockets: one connection, one OnConnect, and the states tell.
func TestRedialSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var raws []*peertest.Raw
		x := &exchange{t: t, take: func(_ int, tr peer.Transport) { raws = append(raws, peertest.NewRaw(t, tr)) }}
		x.hold = func(_ context.Context, n int) error {
			if n == 2 {
				return errRefused
			}
			return nil
		}
		var l states
		greeted := 0
		c := x.client(peer.ClientOptions{Session: session, OnState: l.add, OnConnect: func(context.Context, *peer.Conn) error {
			greeted++
			return nil
		}})
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		raws[0].Close(errors.New("broken"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, err := c.Conn(t.Context()); got != conn || err != nil || greeted != 1 {
			t.Errorf("another connection (%v), or OnConnect ran %d times", err, greeted)
		}
		raws[1].Send(call(1, "m"))
		raws[1].Want(failure(1, -32601, "method not found"))
		raws[1].Close(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, err := c.Conn(t.Context()); got == conn || err != nil || greeted != 2 {
			t.Errorf("the same connection (%v), or OnConnect ran %d times", err, greeted)
		}
		raws[2].Close(errors.New("broken")) // and the client is closed in the pause
		synctest.Wait()
		_ = c.Close()
		if !clientDone(c) {
			t.Error("the client is not done")
		}
		wantPhases(t, &l, peer.Dialling, peer.Connected,
			peer.Interrupted, peer.Dialling, peer.DialFailed, peer.Dialling, peer.Resumed,
			peer.Disconnected, peer.Dialling, peer.Connected, peer.Interrupted, peer.Ended)
		if all := l.list(); all[3].Attempt != 1 || all[5].Attempt != 2 || all[8].Attempt != 1 {
			t.Errorf("states %v", all)
		}
	})
}

// A Session that fails before it dials is no reason to try again at once.
func TestRedialSessionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		x := &exchange{t: t}
		x.client(peer.ClientOptions{Session: func(context.Context, *peer.Redialer) (peer.Transport, error) {
			n++
			return nil, errRefused
		}})
		time.Sleep(time.Hour)
		synctest.Wait()
		if n < 150 || n > 350 {
			t.Errorf("%d sessions were tried within an hour", n)
		}
	})
}

// An attempt ends with DialTimeout, and what comes after the end of the client is closed.
func TestRedialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		x := &exchange{t: t, hold: func(ctx context.Context, n int) error {
			if n == 1 {
				began := time.Now()
				<-ctx.Done()
				took = time.Since(began)
				return ctx.Err()
			}
			time.Sleep(10 * time.Second) // deaf
			return nil
		}}
		c := x.client(peer.ClientOptions{DialTimeout: time.Minute})
		time.Sleep(time.Minute + 2*time.Second)
		synctest.Wait()
		if took != time.Minute {
			t.Errorf("an attempt took %v", took)
		}
		_ = c.Close()
		if clientDone(c) {
			t.Error("the client is done while an attempt runs")
		}
		<-c.Done()
		if !isDone(x.last()) {
			t.Error("a socket that came too late is open")
		}
	})
}

// After a long connection the pauses grow again.
func TestRedialAfterLongConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, hold: func(_ context.Context, n int) error {
			if n > 1 {
				return errRefused
			}
			return nil
		}}
		x.client(peer.ClientOptions{})
		time.Sleep(time.Hour)
		_ = x.last().Close()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(x.dialled()); n < 150 || n > 350 {
			t.Errorf("%d dials within an hour", n)
		}
	})
}

// Nothing, without an error, is an error.
func TestRedialNothing(t *testing.T) {
	for name, opts := range map[string]peer.ClientOptions{
		"Dial":    {Dial: func(context.Context) (peer.Transport, error) { return nil, nil }},
		"Session": {Session: func(context.Context, *peer.Redialer) (peer.Transport, error) { return nil, nil }},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l states
			opts.OnState = l.add
			c := (&exchange{t: t}).client(opts)
			synctest.Wait()
			_ = c.Close()
			<-c.Done()
			all := l.list()
			if s := all[len(all)-2]; s.Phase != peer.DialFailed || s.Err == nil || !strings.Contains(s.Err.Error(), name+" returned no Transport") {
				t.Errorf("%s: state %v", name, s)
			}
		})
	}
}

// A Session bounds its own Dials, and after the end of the client there are none.
func TestRedialContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, hold: func(context.Context, int) error { return errRefused }}
		var d *peer.Redialer
		got := make(chan error, 1)
		var l states
		c := x.client(peer.ClientOptions{OnState: l.add, FirstWait: 1000 * time.Hour, Session: func(ctx context.Context, r *peer.Redialer) (peer.Transport, error) {
			d = r
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := r.Dial(bounded, nil)
			got <- err
			<-ctx.Done()
			return nil, err
		}})
		began := time.Now()
		if err := <-got; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial = %v, want the end of its context", err)
		}
		wantTook(t, "Dial", began, time.Second)
		_ = c.Close()
		<-c.Done()
		n := len(l.list())
		d.Resumed()
		if _, err := d.Dial(t.Context(), errRefused); !errors.Is(err, peer.ErrClosed) {
			t.Errorf("Dial after the end = %v, want ErrClosed", err)
		}
		if more := len(l.list()); more != n || len(x.dialled()) != 1 {
			t.Errorf("after the end %d states and %d dials came", more-n, len(x.dialled())-1)
		}
	})
}

// Redial ends a pause, and nothing else.
func TestRedialNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, opts: methods{"m": answers(1)}.options(), hold: func(_ context.Context, n int) error {
			if n == 1 {
				return errRefused
			}
			return nil
		}}
		c := x.client(peer.ClientOptions{FirstWait: 1000 * time.Hour, MaxWait: 1000 * time.Hour})
		synctest.Wait()
		began := time.Now()
		c.Redial()
		c.Redial()
		if err := c.Call(t.Context(), "m", nil, nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		c.Redial() // while there is no pause
		_ = x.last().Close()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(x.dialled()); n != 2 {
			t.Errorf("%d dials", n)
		}
		c.Redial()
		synctest.Wait()
		if n := len(x.dialled()); n != 3 {
			t.Errorf("%d dials after Redial", n)
		}
	})
}

package resume_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// clientBy is w.client with what every socket goes through, by its number from 1.
func clientBy(t *testing.T, w *world, o *resume.Options, through func(n int, s *socket) peer.Transport) *peer.Client {
	t.Helper()
	n := 0
	c, err := peer.NewClient("", resume.Client(&peer.ClientOptions{
		FirstWait: 10 * time.Millisecond, MaxWait: time.Second,
		Dial: func(context.Context) (peer.Transport, error) {
			s, err := w.dial("somebody")
			if err != nil {
				return nil, err
			}
			n++
			return through(n, s.(*socket)), nil
		},
	}, o))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// "no answer within 10 s, or the socket was lost | dials again": the accepting end has
// taken the session up, its answer is late.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, release := slow(&reg)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := clientBy(t, w, nil, func(n int, s *socket) peer.Transport {
			s.deaf.Store(n == 2) // the second socket is deaf one way
			return s
		})
		defer w.end(c)
		done := call(c, "slow")
		<-started
		time.Sleep(time.Second)
		w.cut()
		time.Sleep(30 * time.Second)
		close(release)
		if err := <-done; err != nil {
			t.Errorf("the call: %v", err)
		}
		t.Logf("stats %+v", w.sessions.Stats())
	})
}

// A handshake that comes late is not heard, and that is no reason to give up a session
// that is there.
func TestLateHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, release := slow(&reg)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := clientBy(t, w, &resume.Options{Handshake: 15 * time.Second}, func(n int, s *socket) peer.Transport {
			s.other.deaf.Store(n == 2)
			return s
		})
		defer w.end(c)
		done := call(c, "slow")
		<-started
		time.Sleep(time.Second)
		w.cut()
		time.Sleep(30 * time.Second)
		close(release)
		if err := <-done; err != nil {
			t.Errorf("the call: %v", err)
		}
	})
}

// Close while the session is being taken up.
func TestCloseInHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := clientBy(t, w, nil, func(n int, s *socket) peer.Transport {
			s.deaf.Store(n == 2) // the answer is on its way
			return s
		})
		defer w.end(c)
		call(c, "slow")
		ctx := <-started
		time.Sleep(time.Second)
		w.cut()
		time.Sleep(time.Second)
		if s := w.sessions.Stats(); s.Parked != 0 {
			t.Fatalf("%+v", s)
		}
		_ = c.Close()
		<-c.Done()
		time.Sleep(time.Second)
		if s := w.sessions.Stats(); s.Open != 0 || ctx.Err() == nil {
			t.Errorf("after Close: %+v, handler %v", s, context.Cause(ctx))
		}
	})
}

// The answer to a handshake comes, but the line itself is never taken: Handshake bounds that, too.
func TestHandshakeBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		c, err := peer.NewClient("", resume.Client(&peer.ClientOptions{
			FirstWait: time.Millisecond, MaxWait: time.Second,
			Dial: func(ctx context.Context) (peer.Transport, error) {
				attempts.Add(1)
				a, b := peer.Pipe()
				go func() { _ = b.Write(context.Background(), []byte("opened 8a7d2f0c4b1e6a93d5c08e17f2b4a6d9 120000")) }()
				return &socket{Transport: a}, nil
			}}, nil))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if attempts.Load() < 2 {
			t.Errorf("after an hour the handshake has not come to an end")
		}
		_ = c.Close()
		time.Sleep(time.Minute)
		select {
		case <-c.Done():
		default:
			t.Error("nor does it after Close")
		}
	})
}

// Ids are never logged.
func TestIDsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		r := w.raw()
		id := opened(t, r)
		r2, _ := w.dial("somebody") // accept's error is what peer logs
		_ = r2
		here, there := peer.Pipe()
		go func() { _ = here.Write(t.Context(), []byte("resume "+id+" 1")) }()
		_, err := w.sessions.Accept(peer.WithPrincipal(t.Context(), "somebody"), there)
		if err != nil && strings.Contains(err.Error(), id) {
			t.Errorf("peer logs this: %v", err)
		}
		_ = w.conn().Close()
		<-w.conn().Done()
		_ = r2.Close(nil)
		time.Sleep(time.Minute)
	})
}

// refusing is a socket that speaks the protocol, as far as the handshake of HTTP goes.
type refusing struct{ peer.Transport }

func (r refusing) Subprotocol() string { return resume.Subprotocol }

// A handshake that fails is a failed attempt: GiveUp is asked, and one socket was lost, not many.
func TestHandshakeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{Park: time.Minute}, nil)
		var dials, asked, failed, interrupted, dialling atomic.Int32
		p := peer.ClientOptions{
			FirstWait: 10 * time.Millisecond, MaxWait: time.Second,
			Dial: func(context.Context) (peer.Transport, error) {
				if dials.Add(1) == 1 {
					return w.dial("somebody")
				}
				a, b := peer.Pipe()
				go func() { // a proxy that takes sockets, and has nobody behind it
					_, _ = b.Read(context.Background(), nil)
					_ = b.Close(errCut)
				}()
				return refusing{a}, nil
			},
			GiveUp: func(error) bool { asked.Add(1); return false },
			OnState: func(s peer.ClientState) {
				switch s.Phase {
				case peer.DialFailed:
					failed.Add(1)
				case peer.Interrupted:
					interrupted.Add(1)
				case peer.Dialling:
					dialling.Add(1)
				}
			},
		}
		c, err := peer.NewClient("", resume.Client(&p, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.cut()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := dialling.Load() - 2; asked.Load() < n || failed.Load() < n || interrupted.Load() > 1 {
			t.Errorf("%d attempts failed: GiveUp was asked of %d, and %d sockets are said to be lost; one was", n, asked.Load(), interrupted.Load())
		}
		w.end(c)
	})
}

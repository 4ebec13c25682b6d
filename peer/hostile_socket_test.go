package peer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// Each panic of a function of Options took a place of the Server for good, and
// left the socket open.
func TestServerOptionPanics(t *testing.T) {
	for name, set := range map[string]func(o *peer.Options, boom func()){
		"Authorize": func(o *peer.Options, boom func()) {
			o.Authorize = func(*http.Request) (context.Context, error) { boom(); return nil, nil }
		},
		"Transport": func(o *peer.Options, boom func()) {
			o.Transport = func(_ *http.Request, tr peer.Transport) (peer.Transport, error) { boom(); return tr, nil }
		},
		"Outgoing": func(o *peer.Options, boom func()) {
			o.Outgoing = []func(peer.Caller) peer.Caller{func(c peer.Caller) peer.Caller { boom(); return c }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var bad atomic.Bool
			bad.Store(true)
			opts := &peer.Options{Limits: peer.Limits{Connections: 1}}
			set(opts, func() {
				if bad.Load() {
					panic("from " + name)
				}
			})
			before := ours()
			s := peer.NewServer(opts)
			hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { // as net/http does, without its log
					if recover() != nil && name == "Authorize" {
						w.WriteHeader(http.StatusInternalServerError)
					}
				}()
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(func() {
				_ = s.Close()
				hs.Close()
				eventually(t, "goroutines are back where they were", func() bool { return ours() <= before })
			})
			url := "ws" + strings.TrimPrefix(hs.URL, "http")

			c, err := peer.Dial(t.Context(), url, nil)
			if refused := err != nil; refused != (name == "Authorize") {
				t.Fatalf("Dial() = %v", err)
			}
			if c != nil { // it was upgraded before the panic
				select {
				case <-c.Done():
				case <-time.After(serverPatience):
					t.Error("the socket stays open")
				}
				var closed *peer.CloseError
				if err := c.Err(); !errors.As(err, &closed) || closed.Code != 1011 {
					t.Errorf("Err() = %v, want close code 1011", err)
				}
			}
			bad.Store(false)
			var again *peer.Conn
			eventually(t, "the place is free", func() bool {
				again, err = peer.Dial(t.Context(), url, nil)
				return err == nil
			})
			_ = again.Close()
			<-again.Done()
		})
	}
}

// A logger that blocked kept the end of a connection from being told.
func TestServerLoggerBlocks(t *testing.T) {
	log, release := newBlockingLog()
	_, url := serve(t, &peer.Options{Logger: log, Limits: peer.Limits{MessageBytes: 1024}})
	t.Cleanup(release) // before the Server is closed
	ws := socket(t, url, nil)
	ctx, cancel := context.WithTimeout(t.Context(), serverPatience)
	defer cancel()
	if err := ws.Write(ctx, websocket.MessageText, []byte(strings.Repeat(" ", 2048))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(ctx); websocket.CloseStatus(err) != 1009 {
		t.Errorf("Read() = %v, want close code 1009", err)
	}
}

// Shutdown returned while an upgrade was under way, whose connection came to
// life after it.
func TestServerShutdownAwaitsUpgrades(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s, url := serve(t, &peer.Options{Authorize: func(*http.Request) (context.Context, error) {
		close(entered)
		<-leave
		return nil, nil
	}})
	dialed := make(chan error, 1)
	go func() {
		c, err := peer.Dial(context.Background(), url, nil)
		if err == nil {
			<-c.Done()
			err = c.Call(context.Background(), "m", nil, nil)
		}
		dialed <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown() during an upgrade = %v, want its deadline", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), serverPatience)
	defer cancel()
	close(leave)
	if err := s.Shutdown(ctx); err != nil || len(s.Conns()) != 0 {
		t.Fatalf("Shutdown() = %v with %d connections, want nil and none", err, len(s.Conns()))
	}
	var closed *peer.CloseError
	if err := <-dialed; !errors.As(err, &closed) || closed.Code != 1001 {
		t.Errorf("the late end was told %v, want close code 1001", err)
	}
}

type baseKey struct{}

// Conn.Context has the values of BaseContext and of what Authorize returned.
func TestServerConnContext(t *testing.T) {
	s, url := serve(t, &peer.Options{
		BaseContext: context.WithValue(context.Background(), baseKey{}, "base"),
		Authorize: func(r *http.Request) (context.Context, error) {
			return context.WithValue(r.Context(), userKey{}, "ann"), nil
		},
	})
	dial(t, url, nil)
	c := conns(t, s, 1)[0]
	ctx := c.Context()
	if base, user := ctx.Value(baseKey{}), ctx.Value(userKey{}); base != "base" || user != "ann" || ctx.Err() != nil {
		t.Errorf("Context() has %v, %v and ended with %v, want base, ann and nil", base, user, ctx.Err())
	}
	_ = c.Close()
	if cause := context.Cause(ctx); !errors.Is(cause, peer.ErrClosed) {
		t.Errorf("cause of Context() = %v, want ErrClosed", cause)
	}
}

// A refused handshake told the status alone, and a URL without a scheme failed
// with words about something else.
func TestDialErrorSays(t *testing.T) {
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no entry today", http.StatusForbidden)
	}))
	defer hs.Close()
	bare := strings.TrimPrefix(hs.URL, "http://")
	for _, tc := range []struct {
		name, url, says string
		status          int
	}{
		{"body", hs.URL, "no entry today", 403},
		{"address alone", bare, "no scheme", 0},
		{"name alone", "example.com/path", "no scheme", 0},
		{"name and port", "localhost:8080/path", "no scheme", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := peer.Dial(t.Context(), tc.url, nil)
			var bad *wsconn.DialError
			if !errors.As(err, &bad) || bad.Status != tc.status || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Dial(%q) = %v, want a *wsconn.DialError of %d that says %q", tc.url, err, tc.status, tc.says)
			}
		})
	}
}

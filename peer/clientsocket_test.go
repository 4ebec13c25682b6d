package peer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// Over real sockets: a server that refuses, takes, restarts and goes for good.
func TestClientOverSockets(t *testing.T) {
	var server atomic.Pointer[peer.Server] // nil refuses
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := server.Load(); s != nil {
			s.ServeHTTP(w, r)
			return
		}
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	defer ts.Close()
	refusing := func(err error) bool {
		var dial *wsconn.DialError
		return errors.As(err, &dial) && dial.Status == http.StatusServiceUnavailable
	}
	var gives atomic.Bool
	failed := make(chan struct{}, 1)
	c, err := peer.NewClient(ts.URL, &peer.ClientOptions{
		FirstWait: time.Millisecond, MaxWait: 10 * time.Millisecond, GiveUp: func(err error) bool { return gives.Load() && refusing(err) },
		OnState: func(s peer.ClientState) {
			if s.Phase == peer.DialFailed {
				select {
				case failed <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-failed
	ctx, cancel := context.WithTimeout(t.Context(), serverPatience)
	defer cancel()
	for range 3 {
		s := peer.NewServer(methods{"m": answers(1)}.options())
		server.Store(s)
		if err := c.Call(ctx, "m", nil, nil, peer.Idempotent()); err != nil { // it may meet the end of the server before
			t.Error(err)
		}
		server.Store(nil)
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}
	gives.Store(true)
	select {
	case <-c.Done():
	case <-ctx.Done():
		t.Fatal("the client does not give up")
	}
	if !refusing(c.Err()) {
		t.Errorf("Err = %v, want the status of the handshake", c.Err())
	}
}

package resume_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// users is a server with sessions, whose users are named by a header.
type users struct {
	*httptest.Server
	server   *peer.Server
	sessions *resume.Sessions
}

func serveUsers(t *testing.T, opts peer.Options, o *resume.Options) *users {
	u := &users{sessions: resume.NewSessions(o)}
	opts.Authorize = func(r *http.Request) (context.Context, error) {
		name := r.Header.Get("User")
		if name == "" {
			return nil, errors.New("nobody")
		}
		return peer.WithPrincipal(r.Context(), name), nil
	}
	u.server = peer.NewServer(u.sessions.Server(&opts))
	u.Server = httptest.NewServer(u.server)
	t.Cleanup(func() {
		u.Server.Close()
		_ = u.server.Close()
	})
	return u
}

func (u *users) client(t *testing.T, user string, k *knife) *peer.Client {
	opts := &peer.ClientOptions{FirstWait: time.Millisecond, MaxWait: 2 * time.Millisecond}
	opts.WebSocket.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: k.dial}}
	opts.WebSocket.Header = http.Header{"User": {user}}
	c, err := peer.NewClient(u.URL, resume.Client(opts, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); <-c.Done() })
	return c
}

// A handler knows its principal, whichever socket its call came by; and a session goes on
// at a server that is full, though a new one is refused.
func TestServer(t *testing.T) {
	var reg peer.Registry
	const who = peer.Method[struct{}, string]("who")
	who.Handle(&reg, func(ctx context.Context, _ struct{}) (string, error) { return peer.PrincipalFrom(ctx), nil })
	u := serveUsers(t, peer.Options{Handler: &reg, Limits: peer.Limits{Connections: 2}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var knives [2]knife
	var clients [2]*peer.Client
	for i, name := range []string{"one", "another"} {
		clients[i] = u.client(t, name, &knives[i])
	}
	for range 5 {
		for i, name := range []string{"one", "another"} {
			if got, err := who.Call(ctx, clients[i], struct{}{}); err != nil || got != name {
				t.Errorf("%q, %v, want %q", got, err, name)
			}
			knives[i].cut(0, 0)
		}
	}
	for _, c := range clients { // both have their sockets again
		_, _ = who.Call(ctx, c, struct{}{})
	}
	conns := len(u.server.Conns())
	third := u.client(t, "a third", &knife{})
	brief, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if got, err := who.Call(brief, third, struct{}{}); err == nil {
		t.Errorf("a server that is full answered %q", got)
	}
	if s := u.sessions.Stats(); conns != 2 || s.Resumed == 0 {
		t.Errorf("%d connections, %+v", conns, s)
	}
	if err := u.server.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if s := u.sessions.Stats(); s.Open != 0 || s.Parked != 0 {
		t.Errorf("after Shutdown: %+v", s)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// principalHeader has a client say which one it is.
const principalHeader = "Chaos-Client"

// server is the accepting end of all clients.
type server struct {
	listener net.Listener
	http     *http.Server
	peers    *peer.Server
	sessions *resume.Sessions

	mu    sync.Mutex
	conns map[string]*peer.Conn // that said hello, by principal
	said  chan struct{}         // closed when one more does
}

// newServer serves on the loopback interface. up is what comes from a client.
func newServer(resumed bool, up map[string]*lane, t *tally) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("chaos: server: %w", err)
	}
	s := &server{listener: l, conns: make(map[string]*peer.Conn), said: make(chan struct{})}
	var reg peer.Registry
	handle(&reg, func(ctx context.Context) *lane { return up[peer.PrincipalFrom(ctx)] })
	hello.Handle(&reg, func(ctx context.Context, _ struct{}) error {
		r, _ := peer.RequestFrom(ctx)
		s.greet(peer.PrincipalFrom(ctx), r.Conn)
		return nil
	})
	opts := options(&reg, t)
	opts.Authorize = func(r *http.Request) (context.Context, error) {
		name := r.Header.Get(principalHeader)
		if up[name] == nil {
			return nil, errors.New("chaos: no such client")
		}
		return peer.WithPrincipal(r.Context(), name), nil
	}
	if resumed {
		s.sessions = resume.NewSessions(resumption(64 << 10))
		opts = *s.sessions.Server(&opts)
	}
	s.peers = peer.NewServer(&opts)
	s.http = &http.Server{Handler: s.peers, ReadHeaderTimeout: time.Second}
	go func() { _ = s.http.Serve(l) }()
	return s, nil
}

// greet notes the newest connection of a client.
func (s *server) greet(name string, c *peer.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[name] = c
	close(s.said)
	s.said = make(chan struct{})
}

// conn is the newest connection of a client. It waits for one that lives.
func (s *server) conn(ctx context.Context, name string) (peer.Caller, error) {
	for {
		s.mu.Lock()
		c, said := s.conns[name], s.said
		s.mu.Unlock()
		if c != nil && c.Context().Err() == nil {
			return c, nil
		}
		select {
		case <-said:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// close shuts everything down, in order.
func (s *server) close(ctx context.Context) error {
	return errors.Join(s.http.Shutdown(ctx), s.peers.Shutdown(ctx))
}

// open is how many sessions there are.
func (s *server) open() int {
	if s.sessions == nil {
		return 0
	}
	return s.sessions.Stats().Open
}

// options are those of both ends: what is silent is found out soon.
func options(reg *peer.Registry, t *tally) peer.Options {
	o := peer.Options{Handler: reg, Events: t.event}
	o.WebSocket.PingInterval = 300 * time.Millisecond
	o.WebSocket.PongTimeout = 300 * time.Millisecond
	o.Limits.WriteTimeout = 2 * time.Second
	return o
}

// resumption is what both ends choose for sessions. Who hangs in a handshake is given up
// soon; a session without a socket, not. A small buffer has writers wait for
// acknowledgements, too.
func resumption(buffer int64) *resume.Options {
	return &resume.Options{Buffer: buffer, Handshake: time.Second, Park: 5 * time.Minute}
}

// nameOf is the principal of a client.
func nameOf(client int) string { return strconv.Itoa(client) }

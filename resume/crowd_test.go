package resume_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// A connection that came to nothing leaves a session that nobody serves.
func TestNoConnectionNoSession(t *testing.T) {
	var reg peer.Registry
	add.Handle(&reg, sum)
	var once sync.Once
	u := serveUsers(t, peer.Options{Handler: &reg, Outgoing: []func(peer.Caller) peer.Caller{func(c peer.Caller) peer.Caller {
		bad := false
		once.Do(func() { bad = true })
		if bad {
			panic("once")
		}
		return c
	}}}, nil)
	u.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	c := u.client(t, "somebody", &knife{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, _ = add.Call(ctx, c, []int{1, 2}) // may be maybe sent
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := add.Call(ctx, c, []int{1, 2})
	if err != nil || got != 3 {
		t.Errorf("%d, %v; %d connections, %+v", got, err, len(u.server.Conns()), u.sessions.Stats())
	}
}

type countingListener struct {
	net.Listener
	open, most atomic.Int64
}

type countedConn struct {
	net.Conn
	l    *countingListener
	once sync.Once
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := l.open.Add(1)
	for {
		m := l.most.Load()
		if n <= m || l.most.CompareAndSwap(m, n) {
			break
		}
	}
	return &countedConn{Conn: c, l: l}, nil
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.l.open.Add(-1) })
	return c.Conn.Close()
}

// Limits.Connections bounds sockets. Handshakes that are refused (or each taken up by the next)
// hold theirs for 5 s more without a place.
func TestConnections(t *testing.T) {
	for _, what := range []string{"refused", "replaced"} {
		t.Run(what, func(t *testing.T) {
			sessions := resume.NewSessions(nil)
			server := peer.NewServer(sessions.Server(&peer.Options{
				Limits: peer.Limits{Connections: 1},
				Authorize: func(r *http.Request) (context.Context, error) {
					return peer.WithPrincipal(r.Context(), "somebody"), nil
				}}))
			web := httptest.NewUnstartedServer(server)
			l := &countingListener{Listener: web.Listener}
			web.Listener = l
			web.Start()
			defer web.Close()
			defer server.Close()
			dial := func() (*websocket.Conn, error) {
				c, _, err := websocket.Dial(t.Context(), web.URL, &websocket.DialOptions{Subprotocols: []string{resume.Subprotocol}})
				return c, err
			}
			var all []*websocket.Conn
			defer func() {
				for _, c := range all {
					_ = c.CloseNow()
				}
			}()
			send := func(c *websocket.Conn, text string) { _ = c.Write(t.Context(), websocket.MessageText, []byte(text)) }
			id := "00000000000000000000000000000000"
			if what == "replaced" {
				c, err := dial()
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
				send(c, "open")
				_, text, err := c.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				id = string(text[7:39])
				send(c, "ack 0")
			}
			refused := 0
			began := time.Now()
			for i := range 300 {
				c, err := dial()
				if err != nil {
					refused++
					continue
				}
				all = append(all, c)
				send(c, "resume "+id+" "+strconv.Itoa(i+1)+" 0")
				if what == "replaced" {
					if _, text, err := c.Read(t.Context()); err != nil {
						t.Fatalf("%d: %q, %v %+v %d", i, text, err, sessions.Stats(), len(server.Conns()))
					}
				}
			}
			t.Logf("in %v: %d refused, %d sockets open at the same time at a server with Connections: 1", time.Since(began), refused, l.most.Load())
			if l.most.Load() > 1+64+5 {
				t.Errorf("%d sockets are open, for 1 connection and 64 upgrades", l.most.Load())
			}
		})
	}
}

// A server that shuts down does not wait for who says nothing, an hour if it may.
func TestShutdownWhileSilent(t *testing.T) {
	u := serveUsers(t, peer.Options{}, &resume.Options{Handshake: time.Hour})
	c, _, err := websocket.Dial(t.Context(), u.URL, &websocket.DialOptions{
		Subprotocols: []string{resume.Subprotocol}, HTTPHeader: http.Header{"User": {"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	go func() { _, _, _ = c.Read(context.Background()) }() // it closes when it is told
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := u.server.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// One user who is silent in handshakes keeps all others from taking up their sessions at a
// server that is full.
func TestSilentOnes(t *testing.T) {
	var reg peer.Registry
	add.Handle(&reg, sum)
	u := serveUsers(t, peer.Options{Handler: &reg, Limits: peer.Limits{Connections: 1}}, nil)
	var k knife
	c := u.client(t, "honest", &k)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := add.Call(ctx, c, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		s, _, err := websocket.Dial(t.Context(), u.URL, &websocket.DialOptions{
			Subprotocols: []string{resume.Subprotocol}, HTTPHeader: http.Header{"User": {"greedy"}}})
		if err == nil { // more than some are refused
			defer s.CloseNow()
		}
	}
	k.cut(0, 0)
	if _, err := add.Call(ctx, c, []int{1, 2}); err != nil {
		t.Errorf("the honest one's session cannot be taken up: %v; %+v", err, u.sessions.Stats())
	}
}

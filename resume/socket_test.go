package resume_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// knife cuts TCP connections after so many bytes.
type knife struct {
	mu     sync.Mutex
	read   int // of the next connection; 0 never
	write  int
	newest *cutConn
	dials  atomic.Int64
}

type cutConn struct {
	net.Conn
	read, write atomic.Int64 // what is left; it counts down
}

const never = 1 << 40

func (k *knife) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	k.dials.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	cc := &cutConn{Conn: c}
	cc.read.Store(never)
	cc.write.Store(never)
	if k.read > 0 {
		cc.read.Store(int64(k.read))
	}
	if k.write > 0 {
		cc.write.Store(int64(k.write))
	}
	k.read, k.write, k.newest = 0, 0, cc
	return cc, nil
}

// cut cuts the newest connection, and the next one after so many bytes.
func (k *knife) cut(read, write int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read, k.write = read, write
	if k.newest != nil {
		_ = k.newest.Close()
	}
}

func (c *cutConn) Read(p []byte) (int, error) {
	if left := max(c.read.Load(), 0); int64(len(p)) > left {
		p = p[:left]
	}
	if len(p) == 0 {
		_ = c.Close()
		return 0, errors.New("cut")
	}
	n, err := c.Conn.Read(p)
	c.read.Add(-int64(n))
	return n, err
}

func (c *cutConn) Write(p []byte) (int, error) {
	if left := max(c.write.Load(), 0); int64(len(p)) >= left {
		n, _ := c.Conn.Write(p[:left])
		c.write.Add(-int64(n))
		_ = c.Close()
		return n, errors.New("cut")
	}
	n, err := c.Conn.Write(p)
	c.write.Add(-int64(n))
	return n, err
}

// used is how much of the newest connection was read and written.
func (k *knife) used() (read, written int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return int(never - k.newest.read.Load()), int(never - k.newest.write.Load())
}

// TestHandshakeCut cuts the handshake of a session at every byte, in both directions: the
// one that begins it, and the one that takes it up.
func TestHandshakeCut(t *testing.T) {
	var reg peer.Registry
	var ran atomic.Int64
	add.Handle(&reg, func(ctx context.Context, in []int) (int, error) {
		ran.Add(1)
		return sum(ctx, in)
	})
	authorize := func(r *http.Request) (context.Context, error) {
		return peer.WithPrincipal(r.Context(), r.Header.Get("User")), nil
	}
	// Many sessions come to nothing, and are kept for a moment.
	sessions := resume.NewSessions(&resume.Options{PrincipalParked: 1000})
	server := peer.NewServer(sessions.Server(&peer.Options{Handler: &reg, Authorize: authorize}))
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Close()

	connect := func(k *knife) *peer.Client {
		opts := &peer.ClientOptions{FirstWait: time.Millisecond, MaxWait: 2 * time.Millisecond}
		opts.WebSocket.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: k.dial}}
		opts.WebSocket.Header = http.Header{"User": {"somebody"}}
		c, err := peer.NewClient(web.URL, resume.Client(opts, nil))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	calls := int64(0)
	call := func(c *peer.Client, what string, at int) {
		t.Helper()
		calls++
		if got, err := add.Call(ctx, c, []int{at, 1}); err != nil || got != at+1 {
			t.Fatalf("%s cut after %d bytes: %d, %v", what, at, got, err)
		}
	}

	k := &knife{}
	c := connect(k)
	call(c, "nothing", 0)
	conn, _ := c.Conn(ctx)
	read, written := k.used()
	read, written = max(read, 300), max(written, 300) // where the first socket was lost, too
	for at := 1; at <= read+40; at++ {                // and some of what follows
		k.cut(at, 0)
		call(c, "the reading of a session that goes on", at)
	}
	for at := 1; at <= written+40; at++ {
		k.cut(0, at)
		call(c, "the writing of a session that goes on", at)
	}
	if now, _ := c.Conn(ctx); now != conn || conn.Err() != nil {
		t.Errorf("it is another connection now: %v", conn.Err())
	}
	if n := k.dials.Load(); n < int64(read+written) {
		t.Errorf("only %d sockets", n)
	}
	_ = c.Close()
	<-c.Done()

	for _, what := range []string{"reading", "writing"} {
		most := map[string]int{"reading": read, "writing": written}[what]
		for at := 1; at <= most; at += 3 {
			k := &knife{read: at}
			if what == "writing" {
				k = &knife{write: at}
			}
			c := connect(k)
			call(c, "the "+what+" of a new session", at)
			_ = c.Close()
			<-c.Done()
		}
	}
	if ran.Load() != calls {
		t.Errorf("%d calls ran %d times", calls, ran.Load())
	}
}

package load_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/duetrpc/duet/bench/load"
)

// TestWire writes a thousand times, and wants that counted where the system counts.
func TestWire(t *testing.T) {
	var wire load.Wire
	a, b := connect(t, &wire)
	before := wire.Counts()
	for range 1000 {
		if _, err := io.WriteString(a, "three"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(b, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
	after := wire.Counts()
	if _, err := os.Stat("/proc/self/io"); err == nil {
		got := load.Counts{Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes, Bytes: after.Bytes - before.Bytes}
		// The process may do a little besides.
		if got.Reads < 1000 || got.Writes < 1000 || got.Writes > 1500 || got.Bytes < 5000 || got.Bytes > 50_000 {
			t.Errorf("Counts() grew by %+v, want 1000 reads, 1000 writes and 5000 bytes, or few more", got)
		}
	} else if after != (load.Counts{}) {
		t.Errorf("Counts() = %+v, want none where the system counts nothing", after)
	}
	if got := (*load.Wire)(nil).Counts(); got != (load.Counts{}) {
		t.Errorf("Counts() of nil = %+v, want none", got)
	}
	if _, ok := a.(*net.TCPConn); !ok {
		t.Errorf("Dial = %T, want a bare TCP connection", a)
	}
}

// connect returns the two ends of a connection.
func connect(t *testing.T, wire *load.Wire) (client, server net.Conn) {
	t.Helper()
	listener, err := wire.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err = wire.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err = listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// TestWireTLS lets the two configurations meet, and refuses a stranger.
func TestWireTLS(t *testing.T) {
	var wire, other load.Wire
	server, client, err := wire.TLS()
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := other.TLS()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		client *tls.Config
		ok     bool
	}{
		{"its own", client, true},
		{"a stranger", stranger, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := connect(t, &wire)
			accepted := make(chan error, 1)
			go func() { accepted <- tls.Server(b, server).HandshakeContext(t.Context()) }()
			cfg := c.client.Clone()
			cfg.ServerName = "127.0.0.1"
			err := tls.Client(a, cfg).HandshakeContext(t.Context())
			if (err == nil) != c.ok {
				t.Errorf("Handshake() = %v, want success: %v", err, c.ok)
			}
			_ = a.Close()
			<-accepted
		})
	}
}

func TestWireErrors(t *testing.T) {
	var wire load.Wire
	listener, err := wire.Listen()
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	if c, err := wire.Dial(t.Context(), "tcp", address); err == nil {
		_ = c.Close()
		t.Errorf("Dial(%s) = nil, want an error: nobody listens", address)
	}
	transport := &http.Transport{DialContext: wire.Dial} // it fits
	if _, err := (&http.Client{Transport: transport}).Get("http://" + address); err == nil {
		t.Error("Get = nil, want an error: nobody listens")
	}
}

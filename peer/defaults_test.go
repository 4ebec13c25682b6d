package peer_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// What zero fields mean is part of the contract: a server on the open internet
// runs with them.
func TestDefaultLimits(t *testing.T) {
	want := peer.Limits{
		MessageBytes:      4 << 20,
		InFlight:          1024,
		InFlightBytes:     8 << 20,
		BatchItems:        4096,
		Pending:           16384,
		Abandoned:         1024,
		Notifications:     8192,
		NotificationBytes: 16 << 20,
		QueueBytes:        1 << 20,
		StreamBytes:       16 << 20,
		OrderWait:         5 * time.Second,
		WriteTimeout:      10 * time.Second,
		Connections:       10000,
	}
	if got := (peer.Limits{}).WithDefaults(); got != want {
		t.Errorf("Limits{}.withDefaults() = %+v, want %+v", got, want)
	}
	own := peer.Limits{1 << 10, 1, 2, 3, 4, 5, 6, 7, 4 << 10, 8, 9, 10, 11}
	if got := own.WithDefaults(); got != own {
		t.Errorf("Limits of one's own = %+v, want %+v", got, own)
	}
}

// steady is the number of goroutines, once it does not change any more.
func steady(t *testing.T) int {
	t.Helper()
	last, same := 0, 0
	eventually(t, "the number of goroutines stays", func() bool {
		n := runtime.NumGoroutine()
		if same++; n != last {
			last, same = n, 0
		}
		return same == 20
	})
	return last
}

// An idle connection costs one goroutine at each end, the reader.
func TestIdleGoroutines(t *testing.T) {
	const pairs = 20
	base, cancel := context.WithCancel(context.Background())
	defer cancel()
	opts := &peer.Options{Handler: gateOpen, BaseContext: base}
	s, url := serve(t, opts)
	before := steady(t)
	for range pairs {
		c := dial(t, url, opts)
		if err := c.Call(t.Context(), "m", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	conns(t, s, pairs)
	// Those that served the calls end a second later.
	eventually(t, "each idle end costs one goroutine", func() bool { return runtime.NumGoroutine()-before == 2*pairs })
	if got := steady(t) - before; got != 2*pairs {
		t.Errorf("%d idle connections cost %d goroutines, want one for each end", pairs, got)
	}
}

// mute returns the URL of a server that upgrades and then says nothing.
func mute(t *testing.T) string {
	t.Helper()
	over := make(chan struct{})
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// RFC 6455 section 4.2.2, with its fixed GUID.
		key := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(key[:]))
		go func() { <-over; _ = conn.Close() }()
		_, _ = io.Copy(io.Discard, buf)
	}))
	t.Cleanup(func() { close(over); hs.Close() })
	return "ws" + strings.TrimPrefix(hs.URL, "http")
}

// A call to an end that is gone without a word ends with the ping that nobody
// answers, and not only with the caller's context.
func TestPingEndsCalls(t *testing.T) {
	c := dial(t, mute(t), &peer.Options{WebSocket: wsconn.Options{
		PingInterval: 50 * time.Millisecond, PongTimeout: 50 * time.Millisecond}})
	ctx, cancel := context.WithTimeout(t.Context(), serverPatience)
	defer cancel()
	if err := c.Call(ctx, "m", nil, nil); !errors.Is(err, wsconn.ErrPingTimeout) {
		t.Errorf("Call() = %v, want ErrPingTimeout", err)
	}
	<-c.Done()
	if err := c.Err(); !errors.Is(err, wsconn.ErrPingTimeout) {
		t.Errorf("Err() = %v, want ErrPingTimeout", err)
	}
}

// wsconnRuns reports whether a goroutine is in code of package wsconn.
func wsconnRuns() bool {
	buf := make([]byte, 4<<20)
	return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "duet/wsconn.")
}

// Done was closed while the socket still took its leave. The other end here does
// not answer the close frame, so that takes until it cuts the line.
func TestDoneAwaitsSocket(t *testing.T) {
	s, url := serve(t, &peer.Options{Limits: peer.Limits{MessageBytes: 1024}})
	eventually(t, "no socket of another test is left", func() bool { return !wsconnRuns() })
	ws := socket(t, url, nil)
	conn := conns(t, s, 1)[0]
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat(" ", 2048))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection ends", func() bool { return conn.Err() != nil })
	select {
	case <-conn.Done():
		t.Error("Done is closed while the socket waits for the other end")
	case <-time.After(100 * time.Millisecond):
	}
	_ = ws.CloseNow()
	select {
	case <-conn.Done():
	case <-time.After(serverPatience):
		t.Fatal("Done is not closed")
	}
	// The goroutine that closes the socket's own Done may be on its last steps.
	for deadline := time.Now().Add(time.Second); wsconnRuns(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("Done is closed while the socket is still closing")
		}
	}
	var limit *peer.LimitError
	if err := conn.Err(); err == nil || !errors.As(err, &limit) && !errors.Is(err, wsconn.ErrMessageTooBig) {
		t.Errorf("Err() = %v, want the bound", err)
	}
}

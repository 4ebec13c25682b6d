package load

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestBare plays the server of one bare connection: it pings twice, the first
// time together with the 101, and then sends what is no ping.
func TestBare(t *testing.T) {
	address := serveBare(t, func(c net.Conn) {
		answer(t, c, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x89\x02hi")
		expect(t, c, "\x8A\x82\x00\x00\x00\x00hi")
		answer(t, c, "\x89\x00")
		expect(t, c, "\x8A\x80\x00\x00\x00\x00")
		answer(t, c, "\x81\x02{}")
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a text message was answered, want the connection closed")
		}
	})
	b, err := openBare(address)
	if err != nil {
		t.Fatal(err)
	}
	b.answerPings()
}

func TestBareRefused(t *testing.T) {
	address := serveBare(t, func(c net.Conn) {
		answer(t, c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
	})
	if _, err := openBare(address); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("openBare() = %v, want the status", err)
	}
}

// serveBare accepts one connection, reads the request and lets f go on. The test
// ends when f has.
func serveBare(t *testing.T, f func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		c, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil || r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Sec-WebSocket-Version") != "13" {
			t.Errorf("the request is %+v, %v; want a handshake", r, err)
			return
		}
		f(c)
	}()
	return listener.Addr().String()
}

func answer(t *testing.T, c net.Conn, text string) {
	if _, err := io.WriteString(c, text); err != nil {
		t.Error(err)
	}
}

func expect(t *testing.T, c net.Conn, want string) {
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("read %q, %v; want %q", got, err, want)
	}
}

package wsconn_test

// The only tests of this package on real sockets: what TCP and net/http add to the rest.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

// listen serves the accepted ends of a loopback listener to the channel.
func listen(t testing.TB, opts *wsconn.Options) (*httptest.Server, <-chan *wsconn.Conn) {
	t.Helper()
	accepted := make(chan *wsconn.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := wsconn.Accept(w, r, opts); err == nil {
			accepted <- c
		}
	}))
	t.Cleanup(server.Close)
	return server, accepted
}

func socketPair(t testing.TB, dial, accept *wsconn.Options) (dialed, accepted *wsconn.Conn) {
	t.Helper()
	server, conns := listen(t, accept)
	dialed, _, err := wsconn.Dial(context.Background(), server.URL, dial)
	if err != nil {
		t.Fatalf("Dial(%q) = %v", server.URL, err)
	}
	return dialed, <-conns
}

// rawSocket returns a bare TCP stream upgraded by the listener, and its accepted end.
func rawSocket(t testing.TB, opts *wsconn.Options) (net.Conn, *bufio.Reader, *wsconn.Conn) {
	t.Helper()
	server, conns := listen(t, opts)
	raw, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatalf("net.Dial = %v", err)
	}
	io.WriteString(raw, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	r := bufio.NewReader(raw)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("handshake = %v, %v, want 101", resp, err)
	}
	return raw, r, <-conns
}

func TestSocketEcho(t *testing.T) {
	before := runtime.NumGoroutine()
	client := &http.Client{Transport: &http.Transport{}}
	a, b := socketPair(t, &wsconn.Options{HTTPClient: client}, nil)
	go func() {
		var buf []byte
		for {
			var err error
			if buf, err = b.Read(context.Background(), buf[:0]); err != nil {
				return
			}
			b.Write(context.Background(), buf)
		}
	}()
	var buf []byte
	for _, size := range []int{0, 1, 125, 126, 65535, 65536, 1 << 20} {
		want := bytes.Repeat([]byte("é"), size/2)
		if err := a.Write(context.Background(), want); err != nil {
			t.Fatalf("Write of %d bytes = %v", size, err)
		}
		var err error
		if buf, err = a.Read(context.Background(), buf[:0]); err != nil || !bytes.Equal(buf, want) {
			t.Errorf("Read = %d bytes, %v, want %d", len(buf), err, len(want))
		}
	}
	a.Close(nil)
	if _, err := a.Read(context.Background(), nil); !errors.Is(err, io.EOF) {
		t.Errorf("Read after Close = %v, want an orderly end", err)
	}
	<-a.Done()
	<-b.Done()
	// The server's accepting goroutines end when it is closed; of the connection nothing may be left before.
	for range 5000 {
		if runtime.NumGoroutine() <= before+2 {
			return
		}
		runtime.Gosched()
		<-time.After(time.Millisecond)
	}
	t.Errorf("%d goroutines after, %d before and 2 of the server", runtime.NumGoroutine(), before)
}

// The close frame must survive what the other end still sends: with a reset it would be lost on the way.
func TestSocketMessageTooBig(t *testing.T) {
	for range 3 {
		a, b := socketPair(t, nil, &wsconn.Options{ReadLimit: 1000})
		far := readAll(b)
		near := readAll(a)
		writeErr := a.Write(context.Background(), make([]byte, 8<<20))
		for _, err := range []error{<-far, <-near} {
			if !errors.Is(err, wsconn.ErrMessageTooBig) {
				t.Errorf("Read = %v, want ErrMessageTooBig", err)
			}
		}
		if writeErr != nil && !errors.Is(writeErr, wsconn.ErrMessageTooBig) {
			t.Errorf("Write = %v, want nil or ErrMessageTooBig", writeErr)
		}
		<-a.Done()
		<-b.Done()
	}
}

func TestSocketProtocolFault(t *testing.T) {
	raw, r, c := rawSocket(t, nil)
	defer raw.Close()
	end := readAll(c)
	// Much more follows the fault than the reader has taken when it finds it.
	raw.Write(append(frame{text, []byte("plain")}.bytes(false), make([]byte, 1<<20)...))
	if err := <-end; !errors.Is(err, wsconn.ErrProtocol) {
		t.Errorf("Read = %v, want ErrProtocol", err)
	}
	f, err := readFrame(r)
	if err != nil || f.first != closes || binary.BigEndian.Uint16(f.payload) != 1002 {
		t.Errorf("answer = %x %q, %v, want close 1002", f.first, f.payload, err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("stream after the close frame = %v, want io.EOF", err)
	}
	raw.Close()
	<-c.Done()
}

func TestSocketGone(t *testing.T) {
	raw, _, c := rawSocket(t, nil)
	end := readAll(c)
	raw.(*net.TCPConn).SetLinger(0)
	raw.Close()
	if err := <-end; !errors.Is(err, wsconn.ErrAbnormal) || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read = %v, want ErrAbnormal with ECONNRESET", err)
	}
	<-c.Done()
}

func TestSocketWriteTimeout(t *testing.T) {
	raw, _, c := rawSocket(t, &wsconn.Options{WriteTimeout: 50 * time.Millisecond})
	defer raw.Close()
	end := readAll(c)
	msg := make([]byte, 1<<20)
	var err error
	for err == nil { // until the system takes no more
		err = c.Write(context.Background(), msg)
	}
	if !errors.Is(err, wsconn.ErrWriteTimeout) {
		t.Errorf("Write = %v, want ErrWriteTimeout", err)
	}
	if err := <-end; !errors.Is(err, wsconn.ErrWriteTimeout) {
		t.Errorf("Read = %v, want ErrWriteTimeout", err)
	}
	<-c.Done()
}

func TestSocketDialRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, resp, err := wsconn.Dial(context.Background(), "ws://"+l.Addr().String()+"/?token=hunter2", nil)
	var got *wsconn.DialError
	if resp != nil || !errors.As(err, &got) || !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Dial = %v, %v, want a *DialError with ECONNREFUSED and no query", resp, err)
	}
}

// A page that has pointed its own name at a loopback address sends a Host that is not a loopback name.
func TestSocketRebinding(t *testing.T) {
	server, _ := listen(t, nil)
	_, _, err := wsconn.Dial(context.Background(), server.URL, &wsconn.Options{
		Host: "evil.test", Header: http.Header{"Origin": {"http://evil.test"}},
	})
	if got := new(wsconn.DialError); !errors.As(err, &got) || got.Status != 403 {
		t.Errorf("Dial = %v, want status 403", err)
	}
}

func TestSocketHTTP2(t *testing.T) {
	answers := make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := wsconn.Accept(w, r, nil)
		answers <- err
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := new(wsconn.AcceptError); resp.StatusCode != 505 || !errors.As(<-answers, &got) || got.Status != 505 {
		t.Errorf("Accept over %s = %v, status %d, want 505", resp.Proto, got, resp.StatusCode)
	}
}

func TestSocketTLS(t *testing.T) {
	accepted := make(chan *wsconn.Conn, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := wsconn.Accept(w, r, nil); err == nil {
			accepted <- c
		}
	}))
	server.EnableHTTP2 = true // the handshake must still be HTTP/1.1
	server.StartTLS()
	defer server.Close()
	a, _, err := wsconn.Dial(context.Background(), strings.Replace(server.URL, "https", "wss", 1), &wsconn.Options{HTTPClient: server.Client()})
	if err != nil {
		t.Fatalf("Dial = %v", err)
	}
	b := <-accepted
	near, far := readAll(a), readAll(b)
	b.Close(wsconn.ErrGoingAway)
	for _, err := range []error{<-near, <-far} {
		if !errors.Is(err, wsconn.ErrGoingAway) {
			t.Errorf("Read = %v, want ErrGoingAway", err)
		}
	}
	<-a.Done()
	<-b.Done()
}

func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(map[int]string{100: "100B", 10_000: "10kB"}[size], func(b *testing.B) {
			near, far := socketPair(b, nil, nil)
			go func() {
				var buf []byte
				for {
					var err error
					if buf, err = far.Read(context.Background(), buf[:0]); err != nil || far.Write(context.Background(), buf) != nil {
						return
					}
				}
			}()
			msg, buf := make([]byte, size), []byte(nil)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := near.Write(context.Background(), msg); err != nil {
					b.Fatal(err)
				}
				var err error
				if buf, err = near.Read(context.Background(), buf[:0]); err != nil {
					b.Fatal(err)
				}
			}
			near.Close(nil)
			near.Read(context.Background(), nil)
		})
	}
}

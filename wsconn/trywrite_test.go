package wsconn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/wsconn"
)

// pieceSize is a message's, in bytes: no divisor of what a system's buffers may hold.
const pieceSize = 10_007

// piece is the message with this number.
func piece(i int) []byte {
	return bytes.Repeat([]byte{byte(i), byte(i >> 8), 'x'}, pieceSize/3+1)[:pieceSize]
}

// fill has c try to write until the system takes no more, and returns how many messages c took.
func fill(t *testing.T, c *wsconn.Conn) int {
	t.Helper()
	for i := 0; ; i++ {
		took, flushed := c.TryWrite(piece(i))
		if !took {
			t.Fatalf("TryWrite of message %d = false, %v, want true", i, flushed)
		}
		if !flushed {
			if took, flushed := c.TryWrite(nil); took || flushed {
				t.Errorf("TryWrite behind what is left = %v, %v, want false, false", took, flushed)
			}
			return i + 1
		}
	}
}

// wantPieces reads the messages from first to before, each whole and in order.
func wantPieces(t *testing.T, r io.Reader, first, before int) {
	t.Helper()
	for i := first; i < before; i++ {
		if f, err := readFrame(r); err != nil || f.first != text || !bytes.Equal(f.payload, piece(i)) {
			t.Fatalf("message %d of %d = %x with %d bytes, %v, want it whole", i, before, f.first, len(f.payload), err)
		}
	}
}

// What TryWrite leaves is sent by whatever writes next, and everything is whole and in order.
func TestTryWriteLeaves(t *testing.T) {
	for i, test := range []struct {
		name string
		next func(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, n int) // with n messages taken
	}{
		{"a Write of nothing", func(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, n int) {
			go func() {
				if err := c.Write(context.Background()); err != nil {
					t.Errorf("Write = %v", err)
				}
				if took, flushed := c.TryWrite(piece(n)); !took || !flushed {
					t.Errorf("TryWrite = %v, %v after a Write, want true, true", took, flushed)
				}
			}()
			wantPieces(t, raw, 0, n+1)
		}},
		{"a Write", func(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, n int) {
			go func() {
				if err := c.Write(context.Background(), piece(n), piece(n+1)); err != nil {
					t.Errorf("Write = %v", err)
				}
			}()
			wantPieces(t, raw, 0, n+2)
		}},
		{"a large Write", func(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, n int) {
			large := bytes.Repeat([]byte("large"), chunk)
			go c.Write(context.Background(), large)
			wantPieces(t, raw, 0, n)
			if f, err := readFrame(raw); err != nil || !bytes.Equal(f.payload, large) {
				t.Errorf("message = %d bytes, %v, want %d", len(f.payload), err, len(large))
			}
		}},
		{"a pong", func(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, n int) {
			raw.Write(frame{pings, []byte("hello")}.bytes(!client))
			wantPieces(t, raw, 0, n)
			if f, err := readFrame(raw); err != nil || f.first != pongs || string(f.payload) != "hello" {
				t.Errorf("frame = %x %q, %v, want the pong", f.first, f.payload, err)
			}
		}},
		{"a close", func(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, n int) {
			c.Close(wsconn.ErrGoingAway)
			if took, flushed := c.TryWrite(nil); took || flushed {
				t.Errorf("TryWrite after Close = %v, %v, want false, false", took, flushed)
			}
			wantPieces(t, raw, 0, n)
			if f, err := readFrame(raw); err != nil || f.first != closes || !bytes.Equal(f.payload, closePayload(1001, "going away")) {
				t.Errorf("frame = %x %q, %v, want close 1001", f.first, f.payload, err)
			}
			raw.Write(frame{closes, closePayload(1001, "")}.bytes(!client))
			if rest, err := io.ReadAll(raw); len(rest) > 0 {
				t.Errorf("behind the close frame = %x, %v, want nothing", rest, err)
			}
		}},
		{"a close frame that came, and a Write", func(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, n int) {
			raw.Write(frame{closes, closePayload(1000, "")}.bytes(!client))
			go c.Write(context.Background()) // its error depends on which was faster
			wantPieces(t, raw, 0, n)
			if f, err := readFrame(raw); err != nil || f.first != closes || binary.BigEndian.Uint16(f.payload) != 1000 {
				t.Errorf("frame = %x %q, %v, want close 1000", f.first, f.payload, err)
			}
			if rest, err := io.ReadAll(raw); len(rest) > 0 {
				t.Errorf("behind the close frame = %x, %v, want nothing", rest, err)
			}
		}},
	} {
		for _, client := range []bool{i%2 == 0} { // the ends differ in the mask alone
			t.Run(test.name+" "+endName(client, true), func(t *testing.T) {
				c, raw := rawEnd(t, client, true, &wsconn.Options{PingInterval: -1, WriteTimeout: -1})
				defer func() { raw.Close(); c.Close(nil); <-c.Done() }()
				raw.(*net.TCPConn).SetReadBuffer(64 << 10) // so that less of it is enough
				n := fill(t, c)
				readAll(c)
				test.next(t, c, raw, client, n)
			})
		}
	}
}

// Where the system has room, TryWrite is a whole Write, to the largest message.
func TestTryWriteTakes(t *testing.T) {
	for _, client := range []bool{false, true} {
		t.Run(endName(client, true), func(t *testing.T) {
			c, raw := rawEnd(t, client, true, &wsconn.Options{PingInterval: -1, WriteTimeout: -1})
			stock := randomBytes(fixedKeys(), chunk)
			for _, n := range []int{0, 1, 125, 126, 65535, 65536, chunk - 14} {
				took, flushed := c.TryWrite(stock[:n])
				if !took {
					t.Fatalf("TryWrite of %d bytes = %v, %v, want true", n, took, flushed)
				}
				if !flushed {
					go c.Write(context.Background())
				}
				if f, err := readFrame(raw); err != nil || f.first != text || !bytes.Equal(f.payload, stock[:n]) {
					t.Errorf("frame = %x with %d bytes, %v, want text with %d", f.first, len(f.payload), err, n)
				}
				c.Write(context.Background()) // after the other one, if that still runs
			}
			if took, flushed := c.TryWrite(stock[:chunk-13]); took || flushed {
				t.Errorf("TryWrite of %d bytes = %v, %v, want false, false", chunk-13, took, flushed)
			}
			raw.Close()
			readAll(c)
			<-c.Done()
		})
	}
}

// What TryWrite refuses leaves no trace, and Write takes it.
func TestTryWriteRefuses(t *testing.T) {
	refuses := func(t *testing.T, c *wsconn.Conn, why string) {
		t.Helper()
		if took, flushed := c.TryWrite([]byte("refused")); took || flushed {
			t.Errorf("TryWrite %s = %v, %v, want false, false", why, took, flushed)
		}
	}
	// both tries at both ends, and sees that a Write arrives behind it.
	both := func(t *testing.T, a, b *wsconn.Conn, why string) {
		t.Helper()
		for _, ends := range [][2]*wsconn.Conn{{a, b}, {b, a}} {
			refuses(t, ends[0], why)
			go ends[0].Write(context.Background(), []byte("written"))
			if msg, err := ends[1].Read(context.Background(), nil); err != nil || string(msg) != "written" {
				t.Errorf("Read = %q, %v, want the message of the Write", msg, err)
			}
		}
		near, far := readAll(a), readAll(b)
		a.Close(nil)
		refuses(t, a, "after Close")
		<-near
		<-far
		refuses(t, b, "after the other end's Close")
		<-a.Done()
		<-b.Done()
	}
	t.Run("over a pipe", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := pair(t, nil, nil)
			both(t, a, b, "over a pipe")
		})
	})
	t.Run("with compression", func(t *testing.T) {
		a, b := socketPair(t, &wsconn.Options{Compression: true}, &wsconn.Options{Compression: true})
		both(t, a, b, "with compression")
	})
	t.Run("over TLS", func(t *testing.T) {
		accepted := make(chan *wsconn.Conn, 1)
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, err := wsconn.Accept(w, r, nil); err == nil {
				accepted <- c
			}
		}))
		defer server.Close()
		a, _, err := wsconn.Dial(context.Background(), strings.Replace(server.URL, "https", "wss", 1), &wsconn.Options{HTTPClient: server.Client()})
		if err != nil {
			t.Fatalf("Dial = %v", err)
		}
		both(t, a, <-accepted, "over TLS")
	})
	t.Run("while a Write runs", func(t *testing.T) {
		c, raw := rawEnd(t, false, true, &wsconn.Options{PingInterval: -1, WriteTimeout: -1})
		readAll(c)
		large := make([]byte, 32<<20) // more than any system's buffers hold
		written := make(chan error, 1)
		go func() { written <- c.Write(context.Background(), large) }()
		io.ReadFull(raw, make([]byte, 10)) // it has begun: this is its header
		refuses(t, c, "while a Write runs")
		if n, err := io.CopyN(io.Discard, raw, int64(len(large))); err != nil {
			t.Errorf("%d bytes, %v, want %d", n, err, len(large))
		}
		if err := <-written; err != nil {
			t.Errorf("Write = %v, want nil", err)
		}
		if took, flushed := c.TryWrite([]byte("taken")); !took || !flushed {
			t.Errorf("TryWrite after the Write = %v, %v, want true, true", took, flushed)
		}
		if f, err := readFrame(raw); err != nil || string(f.payload) != "taken" {
			t.Errorf("frame = %q, %v, want what TryWrite took", f.payload, err)
		}
		raw.Close()
		<-c.Done()
	})
}

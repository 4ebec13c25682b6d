package wsconn_test

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/duetrpc/duet/wsconn"
)

// A hijackWriter is a ResponseWriter that gives a net.Conn away.
type hijackWriter struct {
	*httptest.ResponseRecorder
	conn     net.Conn
	hijacked bool
}

func (w *hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// A pipeTripper answers requests by a handler, without a network: an upgraded one speaks through a net.Pipe.
type pipeTripper struct{ handler http.HandlerFunc }

func (p pipeTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	near, far := net.Pipe()
	w := &hijackWriter{ResponseRecorder: httptest.NewRecorder(), conn: far}
	p.handler(w, r)
	resp := w.Result()
	if w.hijacked {
		resp.StatusCode, resp.Body = http.StatusSwitchingProtocols, near
	}
	return resp, nil
}

// pair returns two connected ends, dialed and accepted, over a net.Pipe.
func pair(t testing.TB, dial, accept *wsconn.Options) (dialed, accepted *wsconn.Conn) {
	t.Helper()
	return pairBy(t, dial, func(w http.ResponseWriter, r *http.Request) (*wsconn.Conn, error) {
		return wsconn.Accept(w, r, accept)
	})
}

// pairBy is pair where accept does the accepting.
func pairBy(t testing.TB, dial *wsconn.Options, accept func(http.ResponseWriter, *http.Request) (*wsconn.Conn, error)) (dialed, accepted *wsconn.Conn) {
	t.Helper()
	handler := func(w http.ResponseWriter, r *http.Request) {
		var err error
		if accepted, err = accept(w, r); err != nil {
			t.Errorf("Accept = %v", err)
		}
	}
	dialed, _, err := wsconn.Dial(context.Background(), "ws://duet.test/", through(handler, dial))
	if err != nil {
		t.Fatalf("Dial = %v", err)
	}
	return dialed, accepted
}

// through returns opts with an HTTPClient that is answered by handler.
func through(handler http.HandlerFunc, opts *wsconn.Options) *wsconn.Options {
	var o wsconn.Options
	if opts != nil {
		o = *opts
	}
	o.HTTPClient = &http.Client{Transport: pipeTripper{handler}}
	return &o
}

// handshake returns a request that Accept takes.
func handshake() *http.Request {
	r := httptest.NewRequest("GET", "http://duet.test/", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	return r
}

// acceptRaw returns an accepted end and the bare stream of the other.
func acceptRaw(t testing.TB, opts *wsconn.Options) (*wsconn.Conn, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	c, err := wsconn.Accept(&hijackWriter{ResponseRecorder: httptest.NewRecorder(), conn: far}, handshake(), opts)
	if err != nil {
		t.Fatalf("Accept = %v", err)
	}
	return c, near
}

// dialRaw returns a dialed end and the bare stream of the other, which answered with these headers too.
func dialRaw(t testing.TB, opts *wsconn.Options, header ...string) (*wsconn.Conn, net.Conn, error) {
	t.Helper()
	var far net.Conn
	c, _, err := wsconn.Dial(context.Background(), "ws://duet.test/", through(func(w http.ResponseWriter, r *http.Request) {
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		far, _, _ = w.(http.Hijacker).Hijack()
	}, opts))
	return c, far, err
}

// A frame as it stands on the wire, its first byte whole.
type frame struct {
	first   byte
	payload []byte
}

const (
	text   = 0x81
	binMsg = 0x82
	closes = 0x88
	pings  = 0x89
	pongs  = 0x8A
)

// bytes returns the frame, masked with a key of zeros or not at all.
func (f frame) bytes(masked bool) []byte {
	b := []byte{f.first}
	bit := byte(0)
	if masked {
		bit = 0x80
	}
	switch n := len(f.payload); {
	case n < 126:
		b = append(b, bit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
	if masked {
		b = append(b, 0, 0, 0, 0)
	}
	return append(b, f.payload...)
}

// readFrame reads one frame and unmasks it.
func readFrame(r io.Reader) (frame, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := uint64(head[1] & 0x7f)
	if n >= 126 {
		size := map[uint64]int{126: 2, 127: 8}[n]
		ext := make([]byte, 8)
		if _, err := io.ReadFull(r, ext[8-size:]); err != nil {
			return frame{}, err
		}
		n = binary.BigEndian.Uint64(ext)
	}
	var key [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, key[:]); err != nil {
			return frame{}, err
		}
	}
	payload := make([]byte, n)
	_, err := io.ReadFull(r, payload)
	if key != [4]byte{} {
		for i := range payload {
			payload[i] ^= key[i%4]
		}
	}
	return frame{head[0], payload}, err
}

// closePayload is a close frame's payload.
func closePayload(code int, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
}

// readAll reads c to its end, and sends that.
func readAll(c *wsconn.Conn) <-chan error {
	end := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Read(context.Background(), nil); err != nil {
				end <- err
				return
			}
		}
	}()
	return end
}

// transfer writes to one what it reads from the other, until either ends, and ends both.
func transfer(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

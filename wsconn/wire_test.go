package wsconn_test

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/duetrpc/duet/wsconn"
)

// More first bytes of frames, beside those of helper_test.go.
const (
	textBegins = 0x01
	binBegins  = 0x02
	continues  = 0x00
	ends       = 0x80
)

// appendFrame appends f with its length in a field of 0, 2 or 8 bytes, the least that fits where field is negative,
// and masked with a key of rng where that is not nil.
func appendFrame(dst []byte, f frame, field int, rng *rand.Rand) []byte {
	n, bit := len(f.payload), byte(0)
	if rng != nil {
		bit = 0x80
	}
	switch {
	case field == 8 || field < 0 && n > 0xFFFF:
		dst = binary.BigEndian.AppendUint64(append(dst, f.first, bit|127), uint64(n))
	case field == 2 || field < 0 && n > 125:
		dst = binary.BigEndian.AppendUint16(append(dst, f.first, bit|126), uint16(n))
	default:
		dst = append(dst, f.first, bit|byte(n))
	}
	if rng == nil {
		return append(dst, f.payload...)
	}
	key := binary.BigEndian.AppendUint32(nil, rng.Uint32())
	dst = append(dst, key...)
	for i, b := range f.payload {
		dst = append(dst, b^key[i%4])
	}
	return dst
}

// randomBytes returns n bytes that no shift of themselves equals.
func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// upgradeRaw returns a bare TCP stream upgraded by server, which got early together with the handshake.
func upgradeRaw(t testing.TB, server *httptest.Server, early []byte) (net.Conn, *bufio.Reader) {
	t.Helper()
	raw, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatalf("net.Dial = %v", err)
	}
	t.Cleanup(func() { raw.Close() })
	request := "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	go raw.Write(append([]byte(request), early...))
	r := bufio.NewReader(raw)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("handshake = %v, %v, want 101", resp, err)
	}
	return raw, r
}

// dialSocketRaw returns a dialed end over TCP and the bare stream of the other, which sent early together with its
// answer to the handshake.
func dialSocketRaw(t testing.TB, opts *wsconn.Options, early []byte) (*wsconn.Conn, net.Conn) {
	t.Helper()
	raws := make(chan net.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		raw, _, _ := w.(http.Hijacker).Hijack()
		raws <- raw
		answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " +
			base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
		raw.Write(append([]byte(answer), early...))
	}))
	t.Cleanup(server.Close)
	c, _, err := wsconn.Dial(context.Background(), server.URL, opts)
	if err != nil {
		t.Fatalf("Dial = %v", err)
	}
	raw := <-raws
	t.Cleanup(func() { raw.Close() })
	return c, raw
}

// readToClose reads frames until a close frame has come, and gives the data frames to each. It fails where
// anything but the end of the stream follows: say tells the other end that it may go now.
func readToClose(r io.Reader, each func(frame), say func()) error {
	for {
		f, err := readFrame(r)
		if err != nil {
			return fmt.Errorf("no close frame: %w", err)
		}
		switch f.first {
		case closes:
			say()
			// How the stream ends is the system's: what it got too late may reset it.
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				return fmt.Errorf("%d bytes behind the close frame, beginning %x", len(rest), rest[:min(len(rest), 20)])
			}
			return nil
		case text:
			each(f)
		case pings, pongs:
			if len(f.payload) > 125 {
				return fmt.Errorf("control frame %x of %d bytes", f.first, len(f.payload))
			}
		default:
			return fmt.Errorf("frame begins %x", f.first)
		}
	}
}

// fixedKeys returns masking keys that are the same each time.
func fixedKeys() *rand.Rand { return rand.New(rand.NewPCG(5, 6)) }

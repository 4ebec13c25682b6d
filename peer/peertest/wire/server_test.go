package wire_test

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// script is a server that is right about the few methods used here, except
// where one of its functions is set.
type script struct {
	// reply turns the right answers to a text message into what is sent.
	reply func(c *conn, in string, out []string) []string
	// pong is called for a ping in place of the pong.
	pong func(c *conn, payload []byte)
	// broken is called for an illegal frame in place of a close with 1002.
	broken func(c *conn)
	// accept, when set, is sent as Sec-WebSocket-Accept.
	accept string
}

// start serves s on a free loopback port and returns its URL.
func (s script) start(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		accept := base64.StdEncoding.EncodeToString(sum[:])
		if s.accept != "" {
			accept = s.accept
		}
		fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept)
		(&conn{nc: nc, r: rw.Reader}).serve(s)
	}))
	t.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http") + "/"
}

// conn is the server's end of one connection.
type conn struct {
	nc      net.Conn
	r       *bufio.Reader
	mu      sync.Mutex      // held for a whole frame
	waiting json.RawMessage // the id of the callMe under way
	parts   []int           // frame sizes of the text message at hand
}

// frame writes a frame without a mask; first is its whole first byte.
func (c *conn) frame(first byte, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	c.nc.Write(append(b, payload...))
}

func (c *conn) text(s string)  { c.frame(0x81, []byte(s)) }
func (c *conn) close(code int) { c.frame(0x88, binary.BigEndian.AppendUint16(nil, uint16(code))) }

// read returns the first byte of a frame and its payload.
func (c *conn) read() (first byte, masked bool, payload []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(c.r, head[:]); err != nil {
		return
	}
	n := int(head[1] & 0x7F)
	if more := map[int]int{126: 2, 127: 8}[n]; more > 0 {
		b := make([]byte, 8)
		if _, err = io.ReadFull(c.r, b[8-more:]); err != nil {
			return
		}
		n = int(binary.BigEndian.Uint64(b))
	}
	var key [4]byte
	if masked = head[1]&0x80 != 0; masked {
		if _, err = io.ReadFull(c.r, key[:]); err != nil {
			return
		}
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(c.r, payload)
	for i := range payload {
		payload[i] ^= key[i%4]
	}
	return head[0], masked, payload, err
}

func (c *conn) serve(s script) {
	var text []byte
	open := false
	for {
		first, masked, payload, err := c.read()
		if err != nil {
			return
		}
		op := first & 0x0F
		if !masked || first&0x70 != 0 || op >= 8 && len(payload) > 125 || op == 1 && open {
			if s.broken == nil {
				c.close(1002)
				return
			}
			s.broken(c)
			continue
		}
		switch op {
		case 0x8:
			c.frame(0x88, payload)
			return
		case 0x9:
			if s.pong != nil {
				s.pong(c, payload)
			} else {
				c.frame(0x8A, payload)
			}
		case 0x0, 0x1:
			text, c.parts = append(text, payload...), append(c.parts, len(payload))
			if open = first&0x80 == 0; open {
				continue
			}
			out := c.answer(text)
			if s.reply != nil {
				out = s.reply(c, string(text), out)
			}
			for _, m := range out {
				c.text(m)
			}
			text, c.parts = nil, nil
		}
	}
}

// answer returns what a right server sends for one text.
func (c *conn) answer(text []byte) []string {
	var in struct {
		Method string
		Params json.RawMessage
		ID     json.RawMessage
		Result json.RawMessage
	}
	if json.Unmarshal(text, &in) != nil {
		return []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`}
	}
	result := func(id, v []byte) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, v) }
	var p struct {
		N      int
		Method string
		Params json.RawMessage
	}
	switch {
	case in.Method == "" && string(in.ID) == "7":
		return []string{result(c.waiting, in.Result)}
	case in.Method == "echo" && in.ID != nil:
		return []string{result(in.ID, in.Params)}
	case in.Method == "notifyMe" && json.Unmarshal(in.Params, &p) == nil:
		var out []string
		for i := range p.N {
			out = append(out, fmt.Sprintf(`{"jsonrpc":"2.0","method":"tick","params":{"i":%d}}`, i))
		}
		if in.ID != nil {
			out = append(out, result(in.ID, fmt.Append(nil, p.N)))
		}
		return out
	case in.Method == "callMe" && json.Unmarshal(in.Params, &p) == nil:
		c.waiting = in.ID
		return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, p.Method, p.Params)}
	}
	return nil
}

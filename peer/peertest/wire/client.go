package wire

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// What stands for a close frame without a code, and for none at all
// (RFC 6455 section 7.4.1).
const (
	noCode  = 1005
	noClose = 1006
)

// event is what the server did: a whole message, a ping, a pong, or its end.
type event struct {
	op      opcode // opText, opBinary, opPing, opPong, opClose
	payload []byte
	code    int    // of an end
	fault   string // why the stream can be read no further
}

// client is the raw end of one connection. One goroutine calls next, another
// one write. It answers nothing by itself, pings neither: a case is shorter
// than any server's patience, and what is sent must be what the case says.
type client struct {
	conn net.Conn
	r    *bufio.Reader
	open opcode // of the message whose fragments are being collected, or 0
	part []byte
}

// dial connects and does the opening handshake (RFC 6455 section 4.1). ctx
// bounds it, and later every write.
func dial(ctx context.Context, rawURL string, header http.Header) (*client, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	// ctx bounds the name look-up and the TLS handshake in here, too.
	conn, err := connect(ctx, u)
	if err != nil {
		return nil, err
	}
	// An ended context must also end a handshake or a write that is under way.
	context.AfterFunc(ctx, func() { conn.SetWriteDeadline(time.Unix(1, 0)) })
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	c := &client{conn: conn, r: bufio.NewReader(conn)}
	err = c.handshake(u, header)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// connect opens the stream. The port may be left out of the URL, as in any URL.
func connect(ctx context.Context, u *url.URL) (net.Conn, error) {
	port := u.Port()
	switch {
	case u.Scheme == "ws" && port == "":
		port = "80"
	case u.Scheme == "wss" && port == "":
		port = "443"
	case u.Scheme != "ws" && u.Scheme != "wss":
		return nil, fmt.Errorf("URL %q: want ws:// or wss://", u.Redacted())
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	if u.Scheme == "wss" {
		return new(tls.Dialer).DialContext(ctx, "tcp", addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// acceptFor is what the server must answer to key (RFC 6455 section 4.2.2).
func acceptFor(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// handshake sends the request and checks the answer as far as later frames
// depend on it. The reader keeps what the server sent behind its answer.
func (c *client) handshake(u *url.URL, header http.Header) error {
	// 16 characters of rand.Text: the nonce needs this length and no more.
	key := base64.StdEncoding.EncodeToString([]byte(rand.Text()[:16]))
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Upgrade", "websocket")
	h.Set("Connection", "Upgrade")
	h.Set("Sec-WebSocket-Version", "13")
	h.Set("Sec-WebSocket-Key", key)
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: h, ProtoMajor: 1, ProtoMinor: 1}
	if err := req.Write(c.conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.r, req)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols:
		return fmt.Errorf("status %s, want 101", resp.Status)
	case !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket"):
		return errors.New("no Upgrade: websocket in the answer")
	case resp.Header.Get("Sec-WebSocket-Accept") != acceptFor(key):
		return errors.New("wrong Sec-WebSocket-Accept in the answer")
	case resp.Header.Get("Sec-WebSocket-Extensions") != "" && h.Get("Sec-WebSocket-Extensions") == "":
		return errors.New("an extension in the answer that was not offered")
	}
	return nil
}

// write sends f in one piece; the peer sees it whole or the stream ends.
func (c *client) write(f frame) error {
	_, err := c.conn.Write(f.append(nil))
	return err
}

// next reads up to the next event. Nothing follows an event with opClose.
func (c *client) next() event {
	for {
		f, err := readFrame(c.r)
		if v, ok := errors.AsType[violation](err); ok {
			return broken(v)
		}
		// An end of the stream without a close frame, a reset as well as an EOF.
		if err != nil {
			return event{op: opClose, code: noClose}
		}
		switch {
		// Control frames may stand between the fragments of a message.
		case f.op == opClose:
			return closed(f.payload)
		case f.op.control():
			return event{op: f.op, payload: f.payload}
		case f.op == opContinuation && c.open == 0:
			return broken("a continuation of nothing (RFC 6455 section 5.4)")
		case f.op != opContinuation && c.open != 0:
			return broken("a message inside a message (RFC 6455 section 5.4)")
		case f.op != opContinuation:
			c.open = f.op
		}
		if c.part = append(c.part, f.payload...); len(c.part) > maxMessage {
			return broken(violation(fmt.Sprintf("a message longer than %d bytes", maxMessage)))
		}
		if f.fin {
			// The event owns the bytes from here on.
			ev := event{op: c.open, payload: c.part}
			c.open, c.part = 0, nil
			return ev
		}
	}
}

// broken is the event that ends a stream which can not be trusted any more.
func broken(v violation) event {
	return event{op: opClose, code: noClose, fault: "the server sent " + string(v)}
}

// closed reads the body of a close frame (RFC 6455 sections 5.5.1 and 7.4).
// The reason is not looked at: a server may echo a bad one with its code, and
// the case that sends a bad one says so.
func closed(body []byte) event {
	switch {
	case len(body) == 0:
		return event{op: opClose, code: noCode}
	case len(body) == 1:
		return broken("a close frame with a body of one byte (RFC 6455 section 5.5.1)")
	}
	code := int(binary.BigEndian.Uint16(body))
	// 1005, 1006 and 1015 stand for what no frame says; 1004 and the ranges that
	// are only reserved are left alone.
	switch {
	case code < 1000, code > 4999, code == noCode, code == noClose, code == 1015:
		return broken(violation(fmt.Sprintf("close code %d, which no frame may carry (RFC 6455 section 7.4)", code)))
	}
	return event{op: opClose, code: code, payload: body}
}

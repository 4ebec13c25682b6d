package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// bare is the client's end of a WebSocket without a WebSocket library: it is as
// light as a socket, and answers pings so that the other end keeps it.
type bare struct {
	net.Conn
	in *bufio.Reader
}

// handshake is RFC 6455 section 4.1; the key is any 16 bytes.
const handshake = "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n"

func openBare(address string) (bare, error) {
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return bare{}, err
	}
	b := bare{c, bufio.NewReaderSize(c, 256)}
	if err := b.upgrade(address); err != nil {
		_ = c.Close()
		return bare{}, fmt.Errorf("handshake with %s: %w", address, err)
	}
	return b, nil
}

// upgrade asks for a WebSocket and wants a 101 within ten seconds.
func (c bare) upgrade(address string) error {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, handshake, address); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusSwitchingProtocols:
		return errors.New("answered with " + resp.Status)
	}
	return c.SetDeadline(time.Time{})
}

const (
	opPing    = 0x89 // final frame, RFC 6455 section 5.5.2
	opPong    = 0x8A
	masked    = 0x80
	maxLength = 125 // of a control frame, section 5.5
)

// answerPings returns when the connection is over, or carries what is no ping.
func (c bare) answerPings() {
	defer c.Close()
	// One buffer for the pong: its two bytes of head, a mask of zeros, which
	// leaves the text as it is, and the text.
	var pong [6 + maxLength]byte
	for {
		head, text := pong[:2], pong[6:]
		if _, err := io.ReadFull(c.in, head); err != nil || head[0] != opPing || head[1] > maxLength {
			return
		}
		n := int(head[1])
		if _, err := io.ReadFull(c.in, text[:n]); err != nil {
			return
		}
		head[0], head[1] = opPong, masked|byte(n)
		if _, err := c.Write(pong[:6+n]); err != nil {
			return
		}
	}
}

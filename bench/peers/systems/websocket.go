package systems

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/coder/websocket"

	"github.com/duetrpc/duet/bench/load"
)

// maxMessage is above the largest load, so that no system's own limit is measured.
const maxMessage = 16 << 20

// serve answers HTTP on the wire until stop is called.
func serve(wire *load.Wire, h http.Handler) (address string, stop func(), err error) {
	l, err := wire.Listen()
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	return l.Addr().String(), func() { server.Close() }, nil
}

// transport dials through the wire.
func transport(wire *load.Wire) *http.Transport {
	return &http.Transport{DialContext: wire.Dial}
}

// sockets is one WebSocket between two ends in this process.
type sockets struct {
	client, server *websocket.Conn
	stop           func()
}

// Close cuts both ends; a close handshake would only take time here.
func (s *sockets) Close() error {
	s.client.CloseNow()
	s.server.CloseNow()
	s.stop()
	return nil
}

// wrapper replaces what a WebSocket library believes to be its connection.
type wrapper func(io.ReadWriteCloser) io.ReadWriteCloser

// connect makes a pair of coder/websocket connections, without compression. The
// wrappers, where not nil, see everything after the handshake.
func connect(ctx context.Context, wire *load.Wire, wrapServer, wrapClient wrapper) (*sockets, error) {
	accepted := make(chan *websocket.Conn, 1)
	address, stop, err := serve(wire, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrapServer != nil {
			w = &hijacked{w, wrapServer}
		}
		if c, err := websocket.Accept(w, r, nil); err == nil {
			c.SetReadLimit(maxMessage)
			accepted <- c
		}
	}))
	if err != nil {
		return nil, err
	}
	var rt http.RoundTripper = transport(wire)
	if wrapClient != nil {
		rt = &upgraded{rt, wrapClient}
	}
	client, _, err := websocket.Dial(ctx, "ws://"+address, &websocket.DialOptions{HTTPClient: &http.Client{Transport: rt}})
	if err != nil {
		stop()
		return nil, err
	}
	client.SetReadLimit(maxMessage)
	select {
	case server := <-accepted:
		return &sockets{client, server, stop}, nil
	case <-ctx.Done():
		client.CloseNow()
		stop()
		return nil, ctx.Err()
	}
}

// hijacked is a ResponseWriter whose Hijack wraps the connection.
type hijacked struct {
	http.ResponseWriter
	wrap wrapper
}

func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w := wrappedConn{c, h.wrap(c)}
	rw.Writer.Reset(w)
	return w, rw, nil
}

// wrappedConn is a net.Conn that reads and writes through its wrapper.
type wrappedConn struct {
	net.Conn
	through io.ReadWriteCloser
}

func (c wrappedConn) Read(p []byte) (int, error)  { return c.through.Read(p) }
func (c wrappedConn) Write(p []byte) (int, error) { return c.through.Write(p) }
func (c wrappedConn) Close() error                { return c.through.Close() }

// upgraded is a RoundTripper that wraps the body of a 101 response, which is the
// connection.
type upgraded struct {
	http.RoundTripper
	wrap wrapper
}

func (u *upgraded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		resp.Body.Close()
		return nil, errors.New("systems: the upgraded connection cannot be written to")
	}
	resp.Body = u.wrap(body)
	return resp, nil
}

// messages reads and writes whole text messages for a library with a transport of
// its own making. No caller's context reaches coder/websocket: a cancellable one
// costs it 24 allocations a message, and an ended one closes the connection.
type messages struct {
	c   *websocket.Conn
	buf []byte
}

// read returns the next message. It is valid until the next read.
func (m *messages) read() ([]byte, error) {
	_, r, err := m.c.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	m.buf, err = appendAll(m.buf[:0], r)
	return m.buf, err
}

// write writes a message in one frame, with one system call. It may be used
// concurrently.
func (m *messages) write(p []byte) error {
	return m.c.Write(context.Background(), websocket.MessageText, p)
}

// appendAll appends what r has left to buf.
func appendAll(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, max(512, cap(buf)))...)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

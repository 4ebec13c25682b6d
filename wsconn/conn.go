// Package wsconn is one WebSocket that carries whole messages (RFC 6455), on github.com/coder/websocket.
//
//	c, _, err := wsconn.Dial(ctx, "ws://127.0.0.1:8080/", nil) // or wsconn.Accept(w, r, nil) in an http.Handler
//	...
//	err = c.Write(ctx, msg)
//	buf, err = c.Read(ctx, buf[:0])
//	...
//	c.Close(nil)
//	<-c.Done()
//
// What it promises:
//   - No caller's context reaches the socket, where its end would end the connection.
//   - The first cause wins: Read and Write return the same *CloseError from then on.
//   - A connection must be read all the time: pongs, pings and close frames are seen by Read only.
//   - Close returns at once; the close handshake takes at most 5 s behind it. So does every other end.
//   - The reader never waits for a writer: a ping that comes is answered from beside it.
//   - An idle connection has one timer, for the next ping, no goroutine, and over TCP no buffer.
//
// It checks the framing of messages, not their text: whether a message is UTF-8 is for whoever parses it to find
// and to say by Close(ErrInvalidUTF8).
package wsconn

import (
	"sync"
	"time"

	"github.com/coder/websocket"
)

// A Conn is one WebSocket made by Dial or Accept. Read is for one goroutine at a time; everything else may be
// called by many at once. It must be closed, or read until it ends, to be freed.
type Conn struct {
	opts   Options // with defaults
	client bool    // this end dialed, and so masks what it sends
	ws     *websocket.Conn
	sock   *socket
	yield  bool // Yield was called; the reader's

	turn       gate        // shut while a goroutine writes
	writeTimer *time.Timer // runs while the turn is taken; nil without a WriteTimeout
	out        outflow     // guarded by turn

	ping     pinger
	controls controls

	endOnce sync.Once
	cause   *CloseError   // set before ended closes, constant after
	ended   chan struct{} // closed when the cause is known
	done    chan struct{} // closed when nothing is left
}

// newConn returns a Conn whose socket is yet to come by start.
func newConn(opts Options, client bool) *Conn {
	return &Conn{
		opts:   opts,
		client: client,
		turn:   newGate(),
		ended:  make(chan struct{}),
		done:   make(chan struct{}),
	}
}

// start takes over the socket after the handshake.
func (c *Conn) start(ws *websocket.Conn, sock *socket) {
	c.ws, c.sock = ws, sock
	sock.use(c.opts.Buffers, c.client, c.opts.Compression)
	ws.SetReadLimit(-1) // Read has its own, which ends the connection with the exact number
	if c.opts.WriteTimeout > 0 {
		c.writeTimer = time.AfterFunc(c.opts.WriteTimeout, c.writeOverdue)
		c.writeTimer.Stop()
	}
	c.startPing()
}

// Self returns c. What embeds a Conn has this method too, and is known by it to be something else.
func (c *Conn) Self() any { return c }

// Subprotocol is the one both ends agreed on, or "" when they agreed on none.
func (c *Conn) Subprotocol() string { return c.ws.Subprotocol() }

// Done is closed when the socket is closed and every goroutine and timer of the Conn has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// over returns what ended the connection, or nil while it lasts.
func (c *Conn) over() error {
	select {
	case <-c.ended:
		return c.cause
	default:
		return nil
	}
}

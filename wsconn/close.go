package wsconn

import (
	"log/slog"
	"time"

	"github.com/coder/websocket"
)

// closeTimeout bounds the end of every connection, from its cause to Done.
const closeTimeout = 5 * time.Second

// How a connection is ended once its cause is known.
type ending int

const (
	byHandshake ending = iota // close frame out, then read on to the other end's
	byLinger                  // close frame out, then read on to the end of the stream: its framing is lost
	byCut                     // nothing can be said any more, or all has been
)

// Close ends the connection and returns at once, always nil. The close handshake runs behind it, at most 5 s, and
// then the socket is cut: see Done. The first call wins, and only where nothing ended the connection before.
//
// A nil cause is an orderly end, code 1000. Otherwise the method WebSocketClose() (code int, reason string) of the
// cause, or of an error it wraps, chooses what the other end is told: the Err values of this package have it, and
// *CloseError. Every other cause is told as 1011 without its text. Read and Write at this end return the cause
// inside a *CloseError.
func (c *Conn) Close(cause error) error {
	code, reason := closeFrame(cause)
	c.end(&CloseError{Code: code, Reason: reason, Local: true, Err: cause, called: true}, byHandshake)
	return nil
}

// end makes why the cause of the connection's end, unless it has one, and returns the cause it has. It never waits.
func (c *Conn) end(why *CloseError, how ending) *CloseError {
	c.endOnce.Do(func() {
		c.cause = why
		close(c.ended)
		go c.tearDown(how)
	})
	return c.cause
}

// tearDown is the last goroutine of a connection.
func (c *Conn) tearDown(how ending) {
	c.stopPing()
	c.sock.closing()
	// The library bounds its waiting for locks, but not for the rest of a message, and not all of it together.
	deadline := time.AfterFunc(closeTimeout, c.sock.cut)
	switch how {
	case byHandshake:
		c.finishFrame()
		c.sayClose()
	case byLinger:
		// Where the library found the fault by itself it has sent the close frame already; this one is then dropped.
		c.sock.muted.Store(true)
		c.finishFrame()
		c.sayClose()
		c.sock.linger()
	}
	c.sock.cut()
	c.ws.CloseNow()
	deadline.Stop()
	c.stopControls()
	if c.cause.Local && c.cause.Code == 1009 { // here, since a logger may block
		c.opts.Logger.Warn("wsconn: incoming message over the limit, closed with 1009", slog.Int64("limit", c.opts.ReadLimit))
	}
	close(c.done)
}

// sayClose sends the close frame and waits for the other end's. What goes wrong changes nothing: the socket is cut next.
func (c *Conn) sayClose() {
	c.ws.Close(websocket.StatusCode(c.cause.Code), c.cause.Reason)
}

package wsconn

import (
	"context"
	"fmt"
	"time"

	"github.com/coder/websocket"
)

// Write sends each message as one text frame, all of them, in order, with no other Write's between them. It
// returns when they are handed to the system, and keeps nothing of msgs. No messages is no frame, but what TryWrite
// left is sent.
//
// The context bounds the wait for other Writes only: when it ends first, nothing was sent and the error wraps
// why. After that WriteTimeout bounds the Write, and over it the connection ends.
// Any other error is the *CloseError that ended the connection: msgs may have left in part.
func (c *Conn) Write(ctx context.Context, msgs ...[]byte) error {
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	defer c.giveTurn()
	var err error
	if c.opts.Compression {
		for i := 0; i < len(msgs) && err == nil; i++ {
			err = c.ws.Write(context.Background(), websocket.MessageText, msgs[i])
		}
	} else {
		err = c.writeFrames(msgs)
	}
	if err != nil {
		return c.writeFailed(err)
	}
	return nil
}

// TryWrite is Write for one message where that needs no waiting at all. It reports whether it took the message; if
// not, nothing happened. Of what it took the system may not have taken all: then flushed is false, and a Write must
// follow soon, with messages or without, and tells how it went.
//
// It takes nothing over TLS, or anything else that is no bare TCP connection, nor with Compression.
func (c *Conn) TryWrite(msg []byte) (took, flushed bool) {
	low := c.sock.low
	if low == nil || c.opts.Compression || len(msg) > chunk-maxHeader || c.over() != nil || !c.turn.try() {
		return false, false
	}
	defer c.turn.unlock()
	if c.out.buf != nil || !c.sock.frames.try() {
		return false, false
	}
	if c.sock.said {
		c.sock.frames.unlock()
		return false, false
	}
	o := &c.out
	o.buf = c.opts.Buffers.take()
	o.put(msg, c.key()) // there is room for all of it
	n, err := low.write(o.buf[:o.n])
	c.sock.note(err)
	if n < o.n {
		o.n = copy(o.buf[:], o.buf[n:o.n])
		return true, false
	}
	c.endFrames()
	return true, true
}

// takeTurn makes the caller the only writer, with the time of WriteTimeout to write. It fails with nothing written.
func (c *Conn) takeTurn(ctx context.Context) error {
	if err := c.over(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wsconn: write not begun: %w", ctxError(ctx))
	}
	if !c.turn.try() && !c.turn.ask() {
		select {
		case <-c.turn.wake:
		case <-c.ended:
			return c.cause
		case <-ctx.Done():
			return fmt.Errorf("wsconn: write not begun: %w", ctxError(ctx))
		}
	}
	if c.writeTimer != nil {
		c.writeTimer.Reset(c.opts.WriteTimeout)
	}
	return nil
}

func (c *Conn) giveTurn() {
	if c.writeTimer != nil {
		c.writeTimer.Stop()
	}
	c.turn.unlock()
}

// writeOverdue ends the connection: part of a frame may be out, so nothing can follow it.
func (c *Conn) writeOverdue() {
	c.end(&CloseError{Code: codeAbnormal, Local: true, Err: ErrWriteTimeout}, byCut)
}

// readerGrace is how long a failed Write waits for Read to say why.
const readerGrace = time.Second

// writeFailed returns what ended the connection. The socket a Write finds broken often holds the reason unread:
// the other end's close frame, which only Read can see. Where nobody reads, the Write's own error must do.
func (c *Conn) writeFailed(err error) error {
	grace := time.NewTimer(readerGrace)
	defer grace.Stop()
	select {
	case <-c.ended:
		return c.cause
	case <-grace.C:
	}
	if broken := c.sock.broken(); broken != nil {
		err = broken
	}
	return c.end(&CloseError{Code: codeAbnormal, Err: err}, byCut)
}

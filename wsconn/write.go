package wsconn

import (
	"context"
	"fmt"
	"time"

	"github.com/coder/websocket"
)

// Write sends each message as one text frame, all of them, in order, with no other Write's between them. It
// returns when they are handed to the system, and keeps nothing of msgs. No messages is no frame.
//
// The context bounds the wait for other Writes only: when it ends first, nothing was sent and the error wraps
// why. After that WriteTimeout bounds the Write, and over it the connection ends.
// Any other error is the *CloseError that ended the connection: msgs may have left in part.
func (c *Conn) Write(ctx context.Context, msgs ...[]byte) error {
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	defer c.giveTurn()
	for _, msg := range msgs {
		if err := c.ws.Write(context.Background(), websocket.MessageText, msg); err != nil {
			return c.writeFailed(err)
		}
	}
	return nil
}

// takeTurn makes the caller the only writer, with the time of WriteTimeout to write. It fails with nothing written.
func (c *Conn) takeTurn(ctx context.Context) error {
	if err := c.over(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wsconn: write not begun: %w", ctxError(ctx))
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.ended:
		return c.cause
	case <-ctx.Done():
		return fmt.Errorf("wsconn: write not begun: %w", ctxError(ctx))
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
	<-c.turn
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

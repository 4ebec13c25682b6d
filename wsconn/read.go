package wsconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/coder/websocket"
)

// minGrow is the least by which Read grows a buffer for the library.
const minGrow = 512

// Read appends the next message to buf and returns it; the caller owns both. It allocates only where buf has no
// room. One Read at a time. The context is not used: Close ends a Read.
//
// The error is always the *CloseError that ended the connection, with buf as it was given. After Close, messages
// that still come are dropped and Read returns when the close handshake is over.
func (c *Conn) Read(ctx context.Context, buf []byte) ([]byte, error) {
	return c.ReadGrow(ctx, buf, slices.Grow[[]byte])
}

// ReadGrow is Read for callers with buffers of their own: where buf has no room, grow is called, once a message has
// begun to arrive, for a slice that begins with the bytes of buf and has room for n more. It is asked in steps, and
// never for more than 16 KiB or sixteen times what has arrived. On an error the slice it made last is the
// caller's as well.
func (c *Conn) ReadGrow(_ context.Context, buf []byte, grow func(buf []byte, n int) []byte) ([]byte, error) {
	if c.over() != nil {
		return buf, c.readOver()
	}
	msg, err := c.next(buf, grow)
	switch {
	case c.over() != nil:
		return buf, c.readOver()
	case err != nil:
		return buf, c.readFailed(err)
	}
	return msg, nil
}

// Yield has the next Read that has to ask the system for more let other goroutines run first, if the time before it got
// as much as it asked for. It is for who reads requests that are answered, and may be called between two Reads only.
func (c *Conn) Yield() { c.yield = true }

// What next refuses by itself.
var (
	errBinary   = errors.New("binary message refused")
	errOversize = errors.New("over the limit")
	errMasked   = errors.New("masked frame from the accepting end") // RFC 6455 section 5.1
)

// next reads one message: by itself where it is one plain frame, and through the library where it is not.
func (c *Conn) next(buf []byte, grow func([]byte, int) []byte) ([]byte, error) {
	msg, own, err := c.nextFrame(buf, grow)
	if own || err != nil {
		return msg, err
	}
	kind, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	if kind == websocket.MessageBinary && c.opts.RefuseBinary {
		return nil, errBinary
	}
	return appendAll(buf, r, c.opts.ReadLimit, grow)
}

// nextFrame waits for the next frame and reads it if it is a whole message. Otherwise own is false and the frame is
// left to the library, as everything is once the connection has ended, when the library looks for a close frame.
func (c *Conn) nextFrame(buf []byte, grow func([]byte, int) []byte) (msg []byte, own bool, err error) {
	in := &c.sock.in
	in.gate.lock()
	defer in.gate.unlock()
	if c.yield {
		in.yield, c.yield = true, false
	}
	if in.left > 0 { // the library is in the middle of a frame
		return nil, false, nil
	}
	h, err := in.next()
	switch {
	case err != nil:
		return nil, false, err
	case c.over() != nil:
		return nil, true, nil
	case c.client && h.masked:
		return nil, false, errMasked
	case !h.whole(c.client):
		return nil, false, nil
	case h.first&bitsOpcode == opBinary && c.opts.RefuseBinary:
		return nil, false, errBinary
	case h.length > min(c.opts.ReadLimit, math.MaxInt32):
		return nil, false, errOversize
	}
	msg, err = in.message(&h, buf, grow)
	return msg, true, err
}

// appendAll appends all of r, at most limit bytes, to buf.
func appendAll(buf []byte, r io.Reader, limit int64, grow func([]byte, int) []byte) ([]byte, error) {
	start := len(buf)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)-start) > limit:
			return nil, errOversize
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		case n == 0 && len(buf) == cap(buf):
			// Only now: a message that just fits ends in a Read that asks for nothing.
			buf = grow(buf, max(minGrow, len(buf)-start))
		}
	}
}

// readOver returns what ended the connection; after Close, only when the other end has closed too or had its time.
func (c *Conn) readOver() error {
	if c.cause.called {
		<-c.done
	}
	return c.cause
}

var errStalled = errors.New("control frame begun and not completed in 5 s")

// readFailed ends the connection for an error of next. The library has types for close frames only; where there is
// none, and the stream below is well, the fault is in what the other end sent.
func (c *Conn) readFailed(err error) error {
	switch err {
	case errBinary:
		return c.end(&CloseError{Code: 1003, Local: true, Err: err}, byHandshake)
	case errOversize:
		over := fmt.Errorf("over %d bytes", c.opts.ReadLimit)
		return c.end(&CloseError{Code: 1009, Reason: over.Error(), Local: true, Err: over}, byHandshake)
	}
	var frame websocket.CloseError
	if errors.As(err, &frame) {
		// The library has answered the frame and closed the socket.
		return c.end(&CloseError{Code: int(frame.Code), Reason: strings.ToValidUTF8(frame.Reason, "\uFFFD")}, byCut)
	}
	if c.sock.closed.Load() {
		// Of this package only end closes the socket. The library does where a control frame took longer than 5 s.
		return c.end(&CloseError{Code: codeAbnormal, Local: true, Err: errStalled}, byCut)
	}
	if broken := c.sock.broken(); broken != nil {
		return c.end(&CloseError{Code: codeAbnormal, Err: broken}, byCut)
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // without which of the library's functions it went through
	}
	return c.end(&CloseError{Code: 1002, Local: true, Reason: "protocol error", Err: err}, byLinger)
}

package peer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/duetrpc/duet/wsconn"
)

// Pipe returns the two ends of a connection in memory, for tests and for peers
// in one process. A Write waits until the other end has read it; a Close at one
// end is seen at the other as a WebSocket would tell it. Everything blocks on
// channels, so a pipe works inside a testing/synctest bubble.
func Pipe() (Transport, Transport) {
	x, y := make(chan []byte), make(chan []byte)
	a := &pipe{in: x, out: y, done: make(chan struct{})}
	b := &pipe{in: y, out: x, done: make(chan struct{})}
	a.other, b.other = b, a
	return a, b
}

type pipe struct {
	in    <-chan []byte
	out   chan<- []byte
	other *pipe

	once sync.Once
	done chan struct{} // closed by Close of this end
	told error         // what the other end's Read returns; set before done is closed
}

func (p *pipe) Read(ctx context.Context, buf []byte) ([]byte, error) {
	select {
	case msg := <-p.in:
		return append(buf, msg...), nil
	case <-p.done:
		return nil, ErrClosed
	case <-p.other.done:
		return nil, p.other.told
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pipe) Write(ctx context.Context, msgs ...[]byte) error {
	for _, msg := range msgs {
		select {
		case p.out <- slices.Clone(msg):
		case <-p.done:
			return ErrClosed
		case <-p.other.done:
			return p.other.told
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *pipe) Close(cause error) error {
	p.once.Do(func() {
		told := &wsconn.CloseError{Code: 1000}
		var closer interface{ WebSocketClose() (int, string) }
		switch {
		case errors.As(cause, &closer):
			told.Code, told.Reason = closer.WebSocketClose()
		case cause != nil:
			told.Code = 1011
		}
		p.told = told
		close(p.done)
	})
	return nil
}

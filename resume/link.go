package resume

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/duetrpc/duet/peer"
)

// link is one socket of a session, with what it can do beyond a Transport: see
// peer.Transport for the methods, and for Self.
type link struct {
	peer.Transport
	tryWrite func(msg []byte) (took, flushed bool)                                   // nil where it has none
	readGrow func(context.Context, []byte, func([]byte, int) []byte) ([]byte, error) // likewise
	yield    func()                                                                  // likewise
	done     <-chan struct{}                                                         // likewise
}

func newLink(t peer.Transport) *link {
	l := &link{Transport: t}
	if t, ok := t.(interface{ Done() <-chan struct{} }); ok {
		l.done = t.Done()
	}
	self, ok := t.(interface{ Self() any })
	if !ok || !reflect.TypeOf(t).Comparable() || self.Self() != any(t) {
		return l
	}
	if t, ok := t.(interface {
		TryWrite(msg []byte) (took, flushed bool)
	}); ok {
		l.tryWrite = t.TryWrite
	}
	if t, ok := t.(interface {
		ReadGrow(context.Context, []byte, func([]byte, int) []byte) ([]byte, error)
	}); ok {
		l.readGrow = t.ReadGrow
	}
	if t, ok := t.(interface{ Yield() }); ok {
		l.yield = t.Yield
	}
	return l
}

// gone waits until nothing is left of a socket that was closed.
func (l *link) gone() {
	if l.done != nil {
		<-l.done
	}
}

// readLine reads the other end's line of a handshake. It takes at most within, and no longer
// than ctx.
func (l *link) readLine(ctx context.Context, within time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errHandshake)
	defer cancel()
	// A socket does not look at the context; its end ends the Read.
	stop := context.AfterFunc(ctx, func() { _ = l.Close(context.Cause(ctx)) })
	text, err := l.Read(ctx, nil)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	if !isLine(text) {
		return nil, fmt.Errorf("resume: the other end began without a handshake: %w", errBroken)
	}
	return text, nil
}

// ask writes the first line of a handshake and reads the other end's. It reads at the same
// time, since only who reads a socket learns what it has ended with.
func (l *link) ask(ctx context.Context, text []byte, within time.Duration) ([]byte, error) {
	late := time.AfterFunc(within, func() { _ = l.Close(errHandshake) }) // the answer says nothing of the Write
	defer late.Stop()
	wrote := make(chan error, 1)
	go func() {
		err := l.Write(ctx, text)
		if err != nil {
			_ = l.Close(err)
		}
		wrote <- err
	}()
	answer, err := l.readLine(ctx, within)
	if err != nil {
		return nil, err // and the Write has ended, or will
	}
	return answer, <-wrote
}

// errBroken marks what the other end should not have done.
var errBroken = errors.New("protocol error")

// subprotocolOf is what both ends of a socket agreed on.
func subprotocolOf(t peer.Transport) string {
	if t, ok := t.(interface{ Subprotocol() string }); ok {
		return t.Subprotocol()
	}
	return ""
}

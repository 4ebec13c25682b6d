package peertest

import (
	"context"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
)

// Raw is the bare other end of a connection: it sends and receives the text of
// messages and knows nothing of JSON-RPC. Its methods fail the test where they
// cannot do what they say. They are used by one goroutine.
type Raw struct {
	tb       testing.TB
	t        peer.Transport
	messages chan string
	ended    chan struct{}
	err      error // set before ended is closed
}

// Against returns a peer with the given options, which may be nil, and the bare
// end it is connected to.
func Against(tb testing.TB, opts *peer.Options) (*Raw, *peer.Conn) {
	tb.Helper()
	a, b := peer.Pipe()
	return NewRaw(tb, a), Start(tb, b, opts)
}

// NewRaw returns a bare end over t, which is closed at the end of the test.
func NewRaw(tb testing.TB, t peer.Transport) *Raw {
	r := &Raw{tb: tb, t: t, messages: make(chan string, 1<<16), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for {
			msg, err := t.Read(context.Background(), nil)
			if err != nil {
				r.err = err
				return
			}
			r.messages <- string(msg)
		}
	}()
	tb.Cleanup(func() {
		_ = t.Close(nil)
		<-r.ended
	})
	return r
}

// patience bounds what a Raw waits for. It is long, since nothing depends on it
// but how soon a broken test fails.
const patience = 20 * time.Second

// Send sends each text as a message.
func (r *Raw) Send(texts ...string) {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, text := range texts {
		if err := r.t.Write(ctx, []byte(text)); err != nil {
			r.tb.Fatalf("peertest: send %.200q: %v", text, err)
		}
	}
}

// Receive returns the next message.
func (r *Raw) Receive() string {
	r.tb.Helper()
	select {
	case msg := <-r.messages:
		return msg
	default:
	}
	select {
	case msg := <-r.messages:
		return msg
	case <-r.ended:
		r.tb.Fatalf("peertest: the connection ended (%v), a message was expected", r.err)
	case <-time.After(patience):
		r.tb.Fatalf("peertest: no message within %v", patience)
	}
	return ""
}

// Want receives one message for each text, in order, and compares them to the
// byte.
func (r *Raw) Want(texts ...string) {
	r.tb.Helper()
	for _, want := range texts {
		if got := r.Receive(); got != want {
			r.tb.Fatalf("peertest: received\n  %.2000s\nwant\n  %.2000s", got, want)
		}
	}
}

// Waiting returns the messages that have come and were not received. In a
// bubble, after synctest.Wait, these are all.
func (r *Raw) Waiting() []string {
	var all []string
	for {
		select {
		case msg := <-r.messages:
			all = append(all, msg)
		default:
			return all
		}
	}
}

// Close ends the connection as Transport.Close does.
func (r *Raw) Close(cause error) { _ = r.t.Close(cause) }

// Ended waits for the end of the connection and returns what Read returned.
func (r *Raw) Ended() error {
	r.tb.Helper()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(patience):
		r.tb.Fatalf("peertest: the connection does not end")
		return nil
	}
}

package resume

import (
	"context"
	"errors"
	"testing"

	"github.com/duetrpc/duet/peer"
)

// silent is a Transport of which nothing but readGrow is asked.
type silent struct{ peer.Transport }

func (silent) Close(error) error { return nil }

// next is a role that has the session go on over another link at once.
type next struct{ link *link }

func (n next) lost(s *session, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = n.link
}
func (next) ended(*session) {}
func (next) hopeless() bool { return false }

// A slice that grow was given belongs to the caller, who may have given it to somebody else,
// also where the socket is lost before the message is whole.
func TestGrownAndLost(t *testing.T) {
	// As in package peer, room is made by one buffer that takes the place of another.
	var made []byte
	grow := func(buf []byte, n int) []byte {
		if cap(buf) > 0 && &buf[:1][0] != &made[:1][0] {
			t.Error("grow was given what is not the caller's any more")
		}
		made = append(make([]byte, 0, len(buf)+n), buf...)
		return made
	}
	const message = `{"jsonrpc":"2.0","method":"a message that no scratch has room for"}`
	last := &link{Transport: silent{}, readGrow: func(_ context.Context, buf []byte, _ func([]byte, int) []byte) ([]byte, error) {
		return append(buf, message...), nil
	}}
	s := newSession((*Options)(nil).prepare(), "", next{last})
	defer s.stop(nil)
	cut := &link{Transport: silent{}, readGrow: func(_ context.Context, buf []byte, grow func([]byte, int) []byte) ([]byte, error) {
		buf = grow(buf, 1000)
		return buf, errors.New("cut")
	}}
	s.link = &link{Transport: silent{}, readGrow: func(_ context.Context, buf []byte, grow func([]byte, int) []byte) ([]byte, error) {
		s.mu.Lock()
		s.link = cut // it is replaced before its message counts
		s.mu.Unlock()
		return append(grow(buf, len(message)), message...), nil
	}}
	got, err := s.ReadGrow(t.Context(), nil, grow)
	if string(got) != message || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if &got[0] != &made[:1][0] {
		t.Error("the message lies in what is not the caller's any more")
	}
}

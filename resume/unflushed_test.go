package resume

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// flushing is a socket that takes a message without flushing it, and tells of each Write.
type flushing struct {
	silent
	writes chan int // how many messages
}

func (f flushing) Write(_ context.Context, msgs ...[]byte) error {
	f.writes <- len(msgs)
	return nil
}

// What a TryWrite left is flushed also where the Write that follows waits for room: the
// other end cannot acknowledge a part of a message.
func TestUnflushedWhereThereIsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flushing{writes: make(chan int, 10)}
		s := newSession((&Options{Buffer: 4 << 10}).prepare(), "", next{})
		s.link, s.live = &link{Transport: f, tryWrite: func([]byte) (took, flushed bool) { return true, false }}, true
		if took, flushed := s.TryWrite(make([]byte, 3000)); !took || flushed {
			t.Fatal(took, flushed)
		}
		go func() { _ = s.Write(t.Context(), make([]byte, 3000)) }()
		time.Sleep(time.Second)
		select {
		case n := <-f.writes:
			if n != 0 {
				t.Errorf("%d messages were written, and there was room for none", n)
			}
		default:
			t.Error("nothing was flushed")
		}
		_ = s.Close(nil)
		<-s.Done()
	})
}

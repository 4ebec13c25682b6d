package stream

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/duetrpc/duet/peer"
)

// sender is the end of a stream that items leave from.
type sender struct {
	conn   *peer.Conn
	method string
	form   form

	turn sync.Mutex // held while one item is on its way
	text []byte     // of it; guarded by turn
	sent amount     // guarded by turn

	mu      sync.Mutex
	granted amount        // in all
	window  amount        // the first of it
	wanted  chan struct{} // closed by the first of it, where there is none yet
	over    bool

	limits bool          // credit counts
	wake   chan struct{} // credit came, or it is over; has room for one
}

// form is the text around an item.
type form struct {
	head  []byte
	count []byte // where items are numbered, what stands between the number and the item; else nil
	tail  []byte
}

// open appends what stands before item number n.
func (f *form) open(dst []byte, n int64) []byte {
	dst = append(dst, f.head...)
	if f.count != nil {
		dst = append(strconv.AppendInt(dst, n, 10), f.count...)
	}
	return dst
}

// send sends one item as soon as there is credit for it.
func (s *sender) send(ctx context.Context, item any) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	text := s.form.open(s.text[:0], s.sent.items+1)
	at := len(text)
	text, err := s.conn.JSON().Marshal(text, item)
	if err != nil {
		return &ItemError{Err: err}
	}
	size := amount{1, int64(len(text) - at)}
	text = append(text, s.form.tail...)
	s.text = text
	if cap(text) > maxKept {
		s.text = nil
	}
	if err := s.await(ctx, size); err != nil {
		return err
	}
	if err := s.notify(ctx, text); err != nil {
		return err
	}
	s.sent = s.sent.plus(size)
	return nil
}

// maxKept is the largest text of an item, in bytes, whose memory is used again.
const maxKept = 64 << 10

// await waits until an item may leave, without taking anything.
func (s *sender) await(ctx context.Context, size amount) error {
	for {
		s.mu.Lock()
		over, may := s.over, s.may(size)
		s.mu.Unlock()
		switch {
		case over:
			return ErrEnded
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case may:
			return nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
}

// may reports whether there is credit for an item. One that is larger than the whole
// window may leave when nothing else is on its way. s.mu and s.turn are held.
func (s *sender) may(size amount) bool {
	left := s.granted.minus(s.sent)
	return !s.limits || left.atLeast(size) || left.items > 0 && left.atLeast(s.window)
}

// credit takes more of it. The reader calls it.
func (s *sender) credit(params []byte) {
	granted, ok := amountOf(params)
	if !ok {
		return
	}
	s.mu.Lock()
	if s.window == (amount{}) {
		s.window = granted
		if s.wanted != nil {
			close(s.wanted)
			s.wanted = nil
		}
	}
	s.granted = amount{max(s.granted.items, granted.items), max(s.granted.bytes, granted.bytes)}
	s.mu.Unlock()
	s.signal()
}

func (s *sender) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// end lets nothing leave any more, and waits for what is leaving. It reports whether
// this is the first time.
func (s *sender) end() bool {
	s.mu.Lock()
	first := !s.over
	s.over = true
	s.mu.Unlock()
	s.signal()
	s.turn.Lock()
	defer s.turn.Unlock()
	return first
}

// notify sends params by the method of the items.
func (s *sender) notify(ctx context.Context, params []byte) error {
	raw := json.RawMessage(params)
	return s.conn.Notify(ctx, s.method, &raw)
}

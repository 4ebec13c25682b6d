package stream

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// sender is the end of a stream that items leave from.
type sender struct {
	conn   *peer.Conn
	method string
	form   form

	turn sync.Mutex // held while one item is on its way; guards what follows
	head []byte     // of it
	sent amount
	seen amount // of granted

	over atomic.Bool

	mu      sync.Mutex
	granted amount        // in all
	window  amount        // the first of it
	wanted  chan struct{} // closed by the first of it, where there is none yet

	limits bool          // credit counts
	wake   chan struct{} // credit came, or it is over; has room for one
}

// form is the text around an item.
type form struct {
	head  []byte
	count []byte // where items are numbered, what stands between the number and the item; else nil
	tail  []byte
}

// open returns what stands before item number n. It may use dst.
func (f *form) open(dst []byte, n int64) []byte {
	if f.count == nil {
		return f.head
	}
	return append(strconv.AppendInt(append(dst[:0], f.head...), n, 10), f.count...)
}

// send sends one item as soon as there is credit for it.
func (s *sender) send(ctx context.Context, item any) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.head = s.form.open(s.head, s.sent.items+1)
	for {
		e, err := s.conn.Encode(s.method, s.head, item, s.form.tail)
		if err != nil {
			return &ItemError{Err: err}
		}
		size := amount{1, int64(e.Size)}
		switch err := s.ended(ctx); {
		case err != nil:
			e.Drop()
			return err
		case !s.limits || s.may(size):
			if err := e.Send(ctx); err != nil {
				return err
			}
			s.sent = s.sent.plus(size)
			return nil
		}
		// Nothing is kept encoded while it waits, but encoded again after: what nobody takes
		// must not pile up here.
		e.Drop()
		if err := s.await(ctx, size); err != nil {
			return err
		}
	}
}

// ended is why nothing may leave any more, or nil.
func (s *sender) ended(ctx context.Context) error {
	if s.over.Load() {
		return ErrEnded
	}
	return context.Cause(ctx)
}

// await waits until an item may leave, without taking anything. turn is held.
func (s *sender) await(ctx context.Context, size amount) error {
	for !s.may(size) {
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
		if err := s.ended(ctx); err != nil {
			return err
		}
	}
	return nil
}

// may reports whether there is credit for an item. One that is larger than the whole
// window may leave when nothing else is on its way.
func (s *sender) may(size amount) bool {
	if s.seen.minus(s.sent).atLeast(size) {
		return true
	}
	s.mu.Lock()
	window := s.window
	s.seen = s.granted
	s.mu.Unlock()
	left := s.seen.minus(s.sent)
	return left.atLeast(size) || left.items > 0 && left.atLeast(window)
}

// credit takes more of it. The reader calls it.
func (s *sender) credit(params *codec.Object) {
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
	first := s.over.CompareAndSwap(false, true)
	s.signal()
	s.turn.Lock()
	defer s.turn.Unlock()
	return first
}

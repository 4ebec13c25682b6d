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
	head []byte     // of it, where items are numbered
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

// open returns what stands before item number n, where they are numbered. It uses dst.
func (f *form) open(dst []byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst[:0], f.head...), n, 10), f.count...)
}

// send sends one item as soon as there is credit for it.
func (s *sender) send(ctx context.Context, item any) error {
	for {
		if sent, err := s.try(ctx, item); sent || err != nil {
			return err
		}
	}
}

// try sends an item if there is credit for it, or waits until there is. Items are encoded
// before their turn, since that runs code of the user's, unless their turn is written in
// them. Nothing is kept encoded while it waits, but encoded again after: what nobody
// takes must not pile up here.
func (s *sender) try(ctx context.Context, item any) (sent bool, err error) {
	first := s.form.count != nil
	if first {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	head := s.form.head
	if first {
		s.head = s.form.open(s.head, s.sent.items+1)
		head = s.head
	}
	e, err := s.conn.Encode(s.method, head, item, s.form.tail)
	if err != nil {
		return false, &ItemError{Err: err}
	}
	if !first {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	size := amount{1, int64(e.Size)}
	if err = s.ended(ctx); err == nil && s.limits && !s.may(size) {
		e.Drop()
		return false, s.await(ctx, size)
	}
	if err != nil {
		e.Drop()
		return false, err
	}
	if err := e.Send(ctx); err != nil {
		return false, err
	}
	s.sent = s.sent.plus(size)
	return true, nil
}

// ended is why nothing may leave any more, or nil.
func (s *sender) ended(ctx context.Context) error {
	switch {
	case s.over.Load():
		return ErrEnded
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
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

// unwanted reports whether there never was credit, and has none be the first any more.
func (s *sender) unwanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	unwanted := s.wanted != nil
	s.wanted = nil
	return unwanted
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

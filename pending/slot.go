package pending

import (
	"context"
	"sync/atomic"
	"time"
)

// State tells how far the bytes of a call got.
type State uint8

const (
	// NotSent: the bytes never reached the transport.
	NotSent State = iota
	// MaybeSent: they were given to the transport, which did not say that it
	// took them. The other end may have run the call.
	MaybeSent
	// Sent: the transport took them all.
	Sent

	withdrawn // the caller gave up first: the bytes must not leave any more
)

// String returns "not sent", "maybe sent" or "sent".
func (s State) String() string {
	switch s {
	case MaybeSent:
		return "maybe sent"
	case Sent:
		return "sent"
	default:
		return "not sent"
	}
}

// Slot is one call that waits. Its fields are set by Add and only read after.
//
// Slots are used again: whoever keeps one beyond the caller that made it says so
// by Hold, everybody says Release at the end, and nobody touches it after.
type Slot[R any] struct {
	ID     int64
	Method string
	Note   string

	// Kept is the caller's own, and stays with the slot from one use to the next.
	Kept any

	// Number is that of the message the call left in, counted by whoever writes; 0
	// before. It is of use where the other end tells how many it has.
	Number atomic.Uint64

	table   *Table[R]
	began   time.Duration // after the table was made
	done    chan struct{} // room for one, so that settling never blocks
	value   R             // written before done is sent to
	err     error
	over    bool // Wait or Drop has returned; the caller's
	state   atomic.Uint32
	holders atomic.Int32
}

// Wait returns the answer, or the cause the table failed with. When ctx ends
// first the slot is dropped and Wait returns ctx.Err() at once; an answer that
// came before that wins. Wait is called once.
func (s *Slot[R]) Wait(ctx context.Context) (R, error) {
	select {
	case <-s.done:
	case <-ctx.Done():
		if s.table.drop(s) {
			s.over = true
			var none R
			return none, ctx.Err()
		}
		<-s.done // whoever took the slot out of the table is about to send
	}
	s.over = true
	return s.value, s.err
}

// WaitOr waits for the answer, or for one of two channels, and reports which of them it
// was: 1, or 2. With 0 there is nothing more to wait for: Wait returns at once.
func (s *Slot[R]) WaitOr(ctx context.Context, one, two <-chan struct{}) int {
	select {
	case <-one:
		return 1
	case <-two:
		return 2
	case <-s.done:
		s.done <- struct{}{} // it has room for one, and only one is sent
	case <-ctx.Done():
	}
	return 0
}

// Drop removes a slot that nobody will wait for, for instance because its
// request could not be encoded. After Wait it does nothing. An answer that came
// already is lost with it.
func (s *Slot[R]) Drop() {
	if !s.over {
		if !s.table.drop(s) {
			<-s.done
		}
		s.over = true
	}
}

// Hold keeps the slot from being used again until one more Release.
func (s *Slot[R]) Hold() { s.holders.Add(1) }

// Release is the last thing a holder does with the slot. The caller has waited,
// or dropped it, before.
func (s *Slot[R]) Release() {
	if s.holders.Load() == 1 || s.holders.Add(-1) == 0 { // the only one needs no atomic step to know it
		t := s.table
		*s = Slot[R]{done: s.done, Kept: s.Kept}
		t.pool.Put(s)
	}
}

// Leave is called before the bytes are given to the transport. It reports false
// when the caller gave up before: then they must not leave.
func (s *Slot[R]) Leave() bool {
	return s.state.CompareAndSwap(uint32(NotSent), uint32(MaybeSent))
}

// Stay takes Leave back, where the transport was asked and has taken nothing. It is for the
// goroutine of the caller alone, before it waits.
func (s *Slot[R]) Stay() {
	s.state.CompareAndSwap(uint32(MaybeSent), uint32(NotSent))
}

// Left is called when the transport has taken the bytes. It changes nothing for
// a call whose bytes did not leave.
func (s *Slot[R]) Left() {
	s.state.CompareAndSwap(uint32(MaybeSent), uint32(Sent))
}

// State tells how far the bytes got.
func (s *Slot[R]) State() State {
	if st := State(s.state.Load()); st != withdrawn {
		return st
	}
	return NotSent
}

// withdraw keeps bytes that have not left from leaving. It reports whether that
// was in time.
func (s *Slot[R]) withdraw() bool {
	return s.state.CompareAndSwap(uint32(NotSent), uint32(withdrawn))
}

package resume

import (
	"context"
	"fmt"
)

// claim makes l the way of a session that has theirs of our messages, in place of the one
// there may be. It returns how many messages had arrived by then: no more will by the old
// way. The accepting end gives the number of the handshake.
func (s *session) claim(l *link, attempt, theirs uint64) (mine uint64, old *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over != nil:
		return 0, nil, told(s.over)
	case attempt <= s.attempt:
		return 0, nil, &GapError{Reason: Replaced, Err: fmt.Errorf("handshake %d comes after %d", attempt, s.attempt)}
	case theirs < s.out.acked || theirs > s.out.last:
		return 0, nil, &GapError{Reason: Mismatch,
			Err: fmt.Errorf("the other end has %d messages, of those from %d to %d", theirs, s.out.acked, s.out.last)}
	}
	old = s.link
	s.retire(old)
	s.link, s.live, s.unflushed, s.attempt = l, false, false, attempt
	s.confirmed = true
	s.told, s.untold, s.ackDue = s.received, 0, false // the handshake tells
	s.change()
	return s.received, old, nil
}

// proceed sends first, where that is not nil, and what the other end lacks, and opens the
// way for all else, which it reports.
func (s *session) proceed(l *link, theirs uint64, first []byte) (live bool) {
	s.mu.Lock()
	for s.writing && s.link == l { // over the old way, which is closed
		_ = s.wait(context.Background(), nil)
	}
	if s.link != l {
		s.mu.Unlock()
		return false
	}
	s.writing = true
	s.out.acknowledge(max(theirs, s.out.acked))
	c := s.out.pin()
	s.mu.Unlock()

	var err error
	if first != nil {
		err = l.Write(s.ctx, first)
	}
	for ; c != nil && err == nil; c = c.next {
		err = l.Write(s.ctx, c.messages()...)
	}

	s.mu.Lock()
	s.out.unpin()
	s.writing = false
	if err == nil && s.link == l && s.over == nil {
		s.live = true
		if s.received > s.told && !s.armed { // what came meanwhile could not be acknowledged
			s.armed = true
			s.ackTimer.Reset(ackAfter)
		}
	}
	live = s.live && s.link == l
	s.change()
	s.mu.Unlock()
	if err != nil {
		s.lost(l, err)
	}
	return live
}

// arrived is how many messages have arrived.
func (s *session) arrived() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

package resume

import (
	"context"
	"strconv"
	"time"
)

// Write sends msgs, each of which is held until the other end has it. It waits while there is
// no socket, or no room, and returns when they are handed to one. An error is why the session
// is over; a socket that fails is not one.
func (s *session) Write(ctx context.Context, msgs ...[]byte) error {
	for {
		l, n, ack, err := s.hold(ctx, msgs)
		if err != nil {
			return err
		}
		s.hand(l, msgs[:n], ack)
		if msgs = msgs[n:]; len(msgs) == 0 {
			return nil
		}
	}
}

// hold waits for a way to the other end and makes the caller the one who writes. It holds
// as many of msgs as there is room for, at least one where there are any, and returns the
// acknowledgement that should go with them, 0 for none. There is none of msgs to write where
// a TryWrite has left something and there is no room: the other end cannot acknowledge a
// part of a message.
func (s *session) hold(ctx context.Context, msgs [][]byte) (l *link, n int, ack uint64, err error) {
	var timeout *time.Timer
	defer func() {
		if timeout != nil {
			timeout.Stop()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ready() || len(msgs) > 0 && !s.unflushed && !s.out.fits(len(msgs[0]), s.opts.Buffer) {
		if s.over != nil {
			return nil, 0, 0, s.over
		}
		var stalled <-chan time.Time
		at, acked := s.link, s.out.acked
		if s.ready() {
			if timeout == nil {
				timeout = time.NewTimer(stall)
			} else {
				timeout.Reset(stall)
			}
			stalled = timeout.C
		}
		switch err := s.wait(ctx, stalled); {
		case err == errStalled && at == s.link && acked == s.out.acked:
			s.mu.Unlock()
			s.lost(at, err)
			s.mu.Lock()
		case err != nil && err != errStalled:
			return nil, 0, 0, err
		}
	}
	for n < len(msgs) && s.out.fits(len(msgs[n]), s.opts.Buffer) {
		s.out.add(msgs[n])
		n++
	}
	s.writing, s.unflushed = true, false
	if s.received-s.told >= ackSoon {
		ack = s.acknowledging()
	}
	return s.link, n, ack, nil
}

// Ready waits for a way to the other end.
func (s *session) Ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ready() && s.over == nil {
		if err := s.wait(ctx, nil); err != nil {
			return err
		}
	}
	return s.over
}

// ready reports whether somebody may begin to write. s.mu is held.
func (s *session) ready() bool { return s.live && !s.writing && s.over == nil }

// acknowledging notes that the other end is about to be told what has arrived, and returns
// it. s.mu is held.
func (s *session) acknowledging() uint64 {
	s.told, s.untold, s.ackDue = s.received, 0, false
	return s.told
}

// hand gives messages to l, and the turn to write back.
func (s *session) hand(l *link, msgs [][]byte, ack uint64) {
	if ack > 0 {
		s.batch = append(append(s.batch[:0], s.ackLine(ack)), msgs...)
		msgs = s.batch
	}
	err := l.Write(s.ctx, msgs...)
	clear(s.batch)
	s.wrote(l, err)
}

// wrote gives the turn to write back, and first says what became due meanwhile.
func (s *session) wrote(l *link, err error) {
	for {
		s.mu.Lock()
		ack := uint64(0)
		if err == nil && s.ackDue && s.link == l && s.over == nil {
			ack = s.acknowledging()
		}
		if ack == 0 {
			s.writing = false
			s.change()
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		err = l.Write(s.ctx, s.ackLine(ack))
	}
	if err != nil {
		s.lost(l, err)
	}
}

// TryWrite is Write where that needs no waiting at all.
func (s *session) TryWrite(msg []byte) (took, flushed bool) {
	s.mu.Lock()
	l := s.link
	if !s.ready() || l.tryWrite == nil || !s.out.fits(len(msg), s.opts.Buffer) {
		s.mu.Unlock()
		return false, false
	}
	s.out.add(msg)
	s.writing = true
	s.mu.Unlock()
	took, flushed = l.tryWrite(msg)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !took {
		s.out.undo()
	}
	s.unflushed = took && !flushed && s.link == l
	s.writing = false
	if s.ackDue { // which may take waiting
		s.armed = true
		s.ackTimer.Reset(0)
	}
	s.change()
	return took, flushed
}

// ackLine is an acknowledgement in memory of who writes.
func (s *session) ackLine(n uint64) []byte {
	return strconv.AppendUint(append(s.ackText[:0], wordAck+" "...), n, 10)
}

// ackOverdue runs when the timer does: what has arrived is acknowledged now.
func (s *session) ackOverdue() {
	s.mu.Lock()
	s.armed = false
	switch {
	case s.over != nil || !s.live || s.received == s.told && !s.ackDue:
		// Without a socket there is nobody to tell; the next handshake does.
		s.mu.Unlock()
		return
	case s.writing:
		s.ackDue = true
		s.mu.Unlock()
		return
	}
	s.writing = true
	l, ack := s.link, s.acknowledging()
	s.tasks++
	s.mu.Unlock()
	s.wrote(l, l.Write(s.ctx, s.ackLine(ack)))
	s.mu.Lock()
	s.tasks--
	s.checkDone()
	s.mu.Unlock()
}

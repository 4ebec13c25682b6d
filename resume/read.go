package resume

import (
	"context"
	"fmt"
	"slices"
)

// inflow is what the reader of a session has of its own.
type inflow struct {
	link    *link // of the last message
	scratch [40]byte
	used    bool                     // the message lies in scratch
	grow    func([]byte, int) []byte // the caller's
	made    []byte                   // what it has made last, for the message that is being read
	more    func([]byte, int) []byte // grow, with made kept
	room    func([]byte, int) []byte // makes room in scratch for what may be a line, and by grow for all else
	plain   []byte                   // what is read in where a socket has no ReadGrow
}

func (in *inflow) init() {
	in.more = func(buf []byte, n int) []byte {
		in.made = in.grow(buf, n)
		return in.made
	}
	in.room = func(buf []byte, n int) []byte {
		switch {
		case len(buf) == 0 && n <= len(in.scratch):
			in.used = true
			return in.scratch[:0]
		case in.used:
			in.used = false
			return append(in.more(nil, len(buf)+n), buf...)
		}
		return in.more(buf, n)
	}
}

// Read appends the next message to buf.
func (s *session) Read(ctx context.Context, buf []byte) ([]byte, error) {
	return s.ReadGrow(ctx, buf, slices.Grow[[]byte])
}

// ReadGrow is Read where grow makes room.
func (s *session) ReadGrow(ctx context.Context, buf []byte, grow func([]byte, int) []byte) ([]byte, error) {
	for {
		l, err := s.awaitLink(ctx)
		if err != nil {
			return buf, err
		}
		s.in.link = l
		text, whole, err := s.in.read(s.ctx, l, buf, grow)
		switch {
		case err != nil:
			if s.in.made != nil {
				// What buf was before is not ours any more: somebody else may have it.
				buf, s.in.made = s.in.made[:len(buf)], nil
			}
			s.lost(l, err)
		case isLine(text):
			s.heard(l, text)
		case s.count(l, len(text)):
			if whole == nil {
				whole = append(grow(buf, len(text)), text...)
			}
			return whole, nil
		}
		if whole != nil {
			buf = whole[:len(buf)] // what grow has made is ours to use
		}
	}
}

// Yield passes on what the reader knows of what it has read.
func (s *session) Yield() {
	if l := s.in.link; l != nil && l.yield != nil {
		l.yield()
	}
}

// read reads one message. whole is buf with it, or nil where it lies elsewhere.
func (in *inflow) read(ctx context.Context, l *link, buf []byte, grow func([]byte, int) []byte) (text, whole []byte, err error) {
	in.grow, in.used, in.made = grow, false, nil
	switch {
	case l.readGrow == nil:
		if text, err = l.Read(ctx, in.plain[:0]); err != nil {
			return nil, nil, err
		}
		if in.plain = text; cap(text) > chunkSize {
			in.plain = nil // an idle session keeps nothing large
		}
		return text, nil, nil
	case cap(buf) > 0:
		if whole, err = l.readGrow(ctx, buf, in.more); err != nil {
			return nil, nil, err
		}
		in.made = nil
		return whole[len(buf):], whole, nil
	}
	text, err = l.readGrow(ctx, nil, in.room)
	switch {
	case err != nil:
		return nil, nil, err
	case in.used:
		return text, nil, nil
	}
	in.made = nil
	return text, text, nil
}

// awaitLink waits for a link, and returns it also when the session is over, as long as it is
// to be read to its end.
func (s *session) awaitLink(ctx context.Context) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.link != nil:
			return s.link, nil
		case s.over != nil:
			return nil, s.over
		}
		if err := s.wait(ctx, nil); err != nil {
			return nil, err
		}
	}
}

// count counts a message of n bytes that has arrived over l. It reports false where that is
// not, or no more, the way to this end: then it has not arrived.
func (s *session) count(l *link, n int) bool {
	s.mu.Lock()
	if s.link != l || s.over != nil {
		s.mu.Unlock()
		return false
	}
	s.confirmed = true
	s.received++
	s.untold += int64(n)
	arm := !s.armed
	s.armed = true
	much := s.received-s.told == ackMost || s.untold >= ackBytes && s.untold-int64(n) < ackBytes
	s.mu.Unlock()
	switch {
	case much:
		s.ackTimer.Reset(0)
	case arm:
		s.ackTimer.Reset(ackAfter)
	}
	return true
}

// heard does what a line over l says.
func (s *session) heard(l *link, text []byte) {
	n, ok := ackOf(text)
	s.mu.Lock()
	if s.link != l || s.over != nil {
		s.mu.Unlock()
		return
	}
	s.confirmed = true
	if ok && s.out.acked <= n && n <= s.out.last {
		if n > s.out.acked {
			s.out.acknowledge(n)
			s.change()
		}
		s.mu.Unlock()
		return
	}
	acked, last := s.out.acked, s.out.last
	s.mu.Unlock()
	if ok {
		s.fail(l, fmt.Errorf("%d acknowledged, after %d and of %d: %w", n, acked, last, errBroken))
	} else {
		s.fail(l, errLine(text))
	}
}

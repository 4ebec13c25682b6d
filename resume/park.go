package resume

import (
	"log/slog"
	"time"
)

// acceptor is the accepting end of a session.
type acceptor struct {
	sessions  *Sessions
	principal string
}

// berth is the place of a session that is parked.
type berth struct {
	bytes int64
	timer *time.Timer
}

// share is what a principal has parked.
type share struct {
	sessions int
	bytes    int64
}

func (r *acceptor) hopeless() bool { return true }

// lost parks the session.
func (r *acceptor) lost(s *session, why error) {
	s.log(slog.LevelDebug, "resume: socket lost, session parked", slog.Any("error", why))
	for _, victim := range r.sessions.park(s, r.principal) {
		victim.expire(Evicted)
	}
}

// ended forgets the session.
func (r *acceptor) ended(s *session) {
	a := r.sessions
	a.unpark(s)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, keyOf(s.id))
	if gap, ok := s.over.(*GapError); ok {
		if a.stats.Lost == nil {
			a.stats.Lost = make(map[Reason]uint64)
		}
		a.stats.Lost[gap.Reason]++
	}
}

// park keeps a session that has no socket, for a while, and returns those that have to go
// for it, it itself perhaps.
func (a *Sessions) park(s *session, principal string) (victims []*session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes, confirmed, ok := s.unattached()
	if !ok {
		return nil // somebody was faster
	}
	a.remove(s) // lost again before it was taken out
	within := a.opts.Park
	if !confirmed { // the other end may never have heard of it
		within = min(within, a.opts.Handshake)
	}
	b := &berth{bytes: bytes}
	b.timer = time.AfterFunc(within, func() { a.overdue(s, b) })
	a.parked.Add(s, b)
	a.bytes += bytes
	mine := a.shares[principal]
	if mine == nil {
		mine = &share{}
		a.shares[principal] = mine
	}
	mine.sessions++
	mine.bytes += bytes
	for principal != "" && (mine.sessions > a.opts.PrincipalParked || mine.bytes > a.opts.PrincipalBytes) {
		victims = append(victims, a.evict(principal))
	}
	for a.parked.Len() > a.opts.Parked || a.bytes > a.opts.ParkedBytes {
		victims = append(victims, a.evict(a.largest()))
	}
	return victims
}

// largest is the principal that has most of what is parked, by number or bytes: who takes
// more than others loses first. a.mu is held.
func (a *Sessions) largest() (principal string) {
	most := -1.0
	for name, has := range a.shares {
		part := max(float64(has.sessions)/float64(a.opts.Parked), float64(has.bytes)/float64(a.opts.ParkedBytes))
		if part > most {
			principal, most = name, part
		}
	}
	return principal
}

// evict takes the oldest session that a principal has parked out of those. a.mu is held, and
// there is one.
func (a *Sessions) evict(principal string) *session {
	for _, s := range a.parked.Keys() { // oldest first
		if s.role.(*acceptor).principal == principal {
			a.remove(s)
			return s
		}
	}
	panic("resume: a share without a session")
}

// remove takes a session out of those that are parked. a.mu is held.
func (a *Sessions) remove(s *session) {
	b, ok := a.parked.Peek(s)
	if !ok {
		return
	}
	b.timer.Stop()
	a.parked.Remove(s)
	a.bytes -= b.bytes
	principal := s.role.(*acceptor).principal
	has := a.shares[principal]
	has.sessions--
	has.bytes -= b.bytes
	if has.sessions == 0 {
		delete(a.shares, principal)
	}
}

// unpark takes a session out that has a socket again, or is over.
func (a *Sessions) unpark(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, _, alone := s.unattached(); !alone { // otherwise it was lost again, and parked anew
		a.remove(s)
	}
}

// overdue ends a session whose time is over.
func (a *Sessions) overdue(s *session, b *berth) {
	a.mu.Lock()
	here, ok := a.parked.Peek(s)
	if !ok || here != b {
		a.mu.Unlock()
		return
	}
	a.remove(s)
	a.mu.Unlock()
	s.expire(Expired)
}

// unattached reports whether the session has no socket, and is not over; then what it
// holds, and whether the other end has shown that it knows of it.
func (s *session) unattached() (bytes int64, confirmed, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.bytes, s.confirmed, s.link == nil && s.over == nil
}

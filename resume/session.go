package resume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
)

// When an end acknowledges: with what it writes anyway from ackSoon messages on, by itself
// when there are ackMost, or ackBytes of them, and in any case ackAfter the first.
const (
	ackSoon  = 32
	ackMost  = 256
	ackBytes = 256 << 10
	ackAfter = 20 * time.Millisecond
)

// stall is how long a writer waits for room without any acknowledgement before it takes the
// socket for lost: the next handshake tells what arrived.
const stall = time.Minute

// session is one end of a session: a peer.Transport over one socket after the other.
//
// Who has set writing writes to the link, and nobody else. A message is counted, in either
// direction, with mu held and the link still the current one: so the counts that a handshake
// presents are final.
type session struct {
	opts *Options
	id   string
	role role
	ctx  context.Context // ends with the session
	stop context.CancelCauseFunc

	in       inflow // the reader's
	ackTimer *time.Timer

	mu        sync.Mutex
	link      *link  // the current one; nil while there is none
	live      bool   // the link's handshake is over, and what was missing is sent
	writing   bool   // somebody writes to the link
	unflushed bool   // TryWrite has left a part of a message, for Write to send
	attempt   uint64 // the number of the newest handshake

	confirmed bool // something has arrived: the other end knows of the session

	out      retained
	received uint64        // messages that have arrived
	told     uint64        // of these, acknowledged
	untold   int64         // bytes since then
	ackDue   bool          // one is to be sent in any case, as soon as nobody writes
	armed    bool          // the timer runs
	draining bool          // Flush or GoingAway was called: 1001 means the end
	leaving  bool          // GoingAway was: without a socket there is none to come
	over     error         // why it ended; nil before
	changed  chan struct{} // closed when something did; nil while nobody waits
	tasks    int           // what done waits for
	done     chan struct{}

	// Of who has set writing.
	batch   [][]byte
	ackText [32]byte
}

// role is what differs between the ends.
type role interface {
	// lost is told that there is no socket any more, and why.
	lost(s *session, why error)
	// ended is told that the session is over.
	ended(s *session)
	// hopeless reports whether no other socket will come once s drains.
	hopeless() bool
}

func newSession(o *Options, id string, r role) *session {
	s := &session{opts: o, id: id, role: r, done: make(chan struct{})}
	s.out.pool = o.pool
	s.in.init()
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.ackTimer = time.AfterFunc(time.Hour, s.ackOverdue)
	s.ackTimer.Stop()
	return s
}

// Self says that the methods of a session are its own: see peer.Transport.
func (s *session) Self() any { return s }

// Subprotocol is that of its sockets.
func (s *session) Subprotocol() string { return Subprotocol }

// Done is closed when nothing is left.
func (s *session) Done() <-chan struct{} { return s.done }

// Acknowledged is how many messages the other end has said to have.
func (s *session) Acknowledged() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.acked
}

// Flush waits until the other end has all that was written.
func (s *session) Flush(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for s.out.acked < s.out.last {
		if s.over != nil {
			return s.over
		}
		if err := s.wait(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// GoingAway ends a session that nobody can take up any more, now or when it loses its
// socket.
func (s *session) GoingAway() {
	s.mu.Lock()
	s.draining, s.leaving = true, true
	hopeless := s.link == nil && s.role.hopeless()
	s.mu.Unlock()
	if hopeless {
		s.expire(Stopped)
	}
}

// wait waits for a change, with s.mu held, which it gives up meanwhile.
func (s *session) wait(ctx context.Context, timeout <-chan time.Time) error {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-timeout:
		return errStalled
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// change tells those that wait. s.mu is held.
func (s *session) change() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// spawn runs f in a goroutine that Done waits for. s.mu is held, and the session is not done:
// it is not over, or the caller is such a goroutine.
func (s *session) spawn(f func()) {
	s.tasks++
	go func() {
		defer func() {
			s.mu.Lock()
			s.tasks--
			s.checkDone()
			s.mu.Unlock()
		}()
		f()
	}()
}

// log writes a line from beside, since a logger may block, or log over this very session.
func (s *session) log(level slog.Level, msg string, attrs ...slog.Attr) {
	if !s.opts.logger().Enabled(context.Background(), level) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.spawn(func() { s.opts.logger().LogAttrs(context.Background(), level, msg, attrs...) })
	}
}

// checkDone closes done when nothing is left. s.mu is held.
func (s *session) checkDone() {
	if s.over != nil && s.tasks == 0 {
		select {
		case <-s.done:
		default:
			close(s.done)
		}
	}
}

// retire has Done wait for a link that is the current one no more. s.mu is held.
func (s *session) retire(l *link) {
	if l != nil && l.done != nil && s.over == nil {
		s.spawn(l.gone)
	}
}

// lost notes that l came to its end, and does what follows from that.
func (s *session) lost(l *link, why error) {
	s.mu.Lock()
	if s.link != l {
		s.mu.Unlock()
		return
	}
	s.link, s.live = nil, false
	s.retire(l)
	s.change()
	over := s.over != nil
	end := ending(why, s.draining)
	if end == nil && s.leaving && s.role.hopeless() {
		end = &GapError{Reason: Stopped, Err: why}
	}
	s.mu.Unlock()
	if over { // and l was closed for it
		return
	}
	_ = l.Close(why) // whoever noticed, its other half may not have
	if end != nil {
		s.end(end)
	} else {
		s.role.lost(s, why)
	}
}

// fail ends the session for what the other end did over l.
func (s *session) fail(l *link, why error) {
	s.mu.Lock()
	current := s.link == l
	s.mu.Unlock()
	if current {
		s.end(&GapError{Reason: Broken, Err: why})
	}
}

// end ends the session for a reason of its own. The first one counts.
func (s *session) end(why error) { s.finish(why, false) }

// expire ends the session unless it has a socket.
func (s *session) expire(why Reason) { s.finish(&GapError{Reason: why}, true) }

// Close ends the session, at both ends where there is a socket.
func (s *session) Close(cause error) error {
	s.finish(or(cause, errClosed), false)
	return nil
}

// finish is the end. It reports whether this is it. With alone, it is not while there is a
// socket.
func (s *session) finish(why error, alone bool) bool {
	s.mu.Lock()
	if s.over != nil || alone && s.link != nil {
		s.mu.Unlock()
		return false
	}
	s.over = why
	s.out.free()
	l := s.link
	s.change()
	s.spawn(func() { // holds done back until all of this has run
		if l != nil {
			_ = l.Close(told(why))
		}
		s.stop(told(why)) // with it a handshake that is under way
		s.ackTimer.Stop()
		s.role.ended(s)
		if l != nil {
			l.gone()
		}
	})
	s.mu.Unlock()
	return true
}

var _ peer.Transport = (*session)(nil)

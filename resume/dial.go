package resume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/duetrpc/duet/peer"
)

// Client returns a copy of opts, which may be nil, with which a peer.Client has sessions
// with ends that speak the protocol, and plain connections with all others. It panics with
// an *OptionError where o is wrong. Options.Subprotocols are offered after [Subprotocol],
// ClientOptions.Session is replaced.
func Client(opts *peer.ClientOptions, o *Options) *peer.ClientOptions {
	p := o.prepare()
	var c peer.ClientOptions
	if opts != nil {
		c = *opts
	}
	p.Logger = or(p.Logger, c.Logger)
	c.WebSocket.Subprotocols = offer(c.WebSocket.Subprotocols)
	c.Session = func(ctx context.Context, d *peer.Redialer) (peer.Transport, error) {
		return open(ctx, p, d)
	}
	return &c
}

// offer puts the subprotocol before all others.
func offer(names []string) []string {
	all := []string{Subprotocol}
	for _, name := range names {
		if name != Subprotocol {
			all = append(all, name)
		}
	}
	return all
}

// dialler is the dialling end of a session.
type dialler struct {
	redialer redialer
	park     time.Duration // how long the other end keeps the session without a socket
	turn     chan struct{} // has room for who dials, until it is told how that went
	attempt  uint64        // of the last handshake; of who dials
}

// redialer makes sockets: a *peer.Redialer.
type redialer interface {
	Dial(ctx context.Context, lost error) (peer.Transport, error)
	Failed(err error) (more bool)
	Resumed()
}

// open dials, and begins a session where the other end has them.
func open(ctx context.Context, o *Options, d redialer) (peer.Transport, error) {
	t, err := d.Dial(ctx, nil)
	if err != nil {
		return nil, err
	}
	if subprotocolOf(t) != Subprotocol {
		return t, nil
	}
	l := newLink(t)
	id, park, err := begin(ctx, o, l)
	if err != nil {
		_ = l.Close(err)
		return nil, fmt.Errorf("resume: no session: %w", err)
	}
	if id == "" {
		o.logger().Warn("resume: the other end has no session for this one, the connection is plain")
		return t, nil
	}
	s := newSession(o, id, &dialler{redialer: d, park: park, turn: make(chan struct{}, 1)})
	s.link, s.live = l, true
	// The other end keeps for long only what it knows to have begun at this end, too. It
	// is told from beside, when somebody reads.
	s.ackDue, s.armed = true, true
	s.ackTimer.Reset(0)
	return s, nil
}

// begin asks for a session. The id is "" where there are none.
func begin(ctx context.Context, o *Options, l *link) (id string, park time.Duration, err error) {
	text, err := l.ask(ctx, line(wordOpen), o.Handshake)
	if err != nil {
		return "", 0, err
	}
	if string(text) == wordPlain {
		return "", 0, nil
	}
	args, ok := words(text, wordOpened, 2)
	if ok && isID(args[0]) {
		if ms, ok := number(args[1]); ok && ms > 0 {
			return string(args[0]), time.Duration(min(ms, uint64(maxPark/time.Millisecond))) * time.Millisecond, nil
		}
	}
	return "", 0, &GapError{Reason: Broken, Err: errLine(text)}
}

// maxPark bounds what is believed of the other end.
const maxPark = 30 * 24 * time.Hour

// lost dials again.
func (d *dialler) lost(s *session, why error) {
	s.log(slog.LevelInfo, "resume: socket lost, dialling again", slog.Any("error", why))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.spawn(func() { d.redial(s, why) })
	}
}

// redial takes the session up over another socket, or ends it.
func (d *dialler) redial(s *session, why error) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(s.ctx, d.park, &GapError{Reason: Expired, Err: why})
	defer cancel()
	for {
		var gap *GapError
		t, err := d.redialer.Dial(ctx, why)
		if err != nil {
			if errors.As(context.Cause(ctx), &gap) {
				s.end(gap)
			}
			return // otherwise the client has ended, and so will this
		}
		l := newLink(t)
		theirs, err := d.present(ctx, s, l)
		if err == nil {
			if s.proceed(l, theirs, nil) {
				d.redialer.Resumed()
				s.log(slog.LevelInfo, "resume: session goes on", slog.Duration("after", time.Since(began)))
			}
			return // where it is lost again, another goroutine is on its way
		}
		_ = l.Close(err)
		if errors.As(err, &gap) {
			s.end(gap)
			return
		}
		if !d.redialer.Failed(err) {
			return
		}
		why = nil // it was no socket of the session
	}
}

// present claims the session over l, and has l be the way of it. It returns how many
// messages have arrived at the other end. Where the session is over the error is a
// *GapError.
func (d *dialler) present(ctx context.Context, s *session, l *link) (theirs uint64, err error) {
	if subprotocolOf(l.Transport) != Subprotocol {
		return 0, &GapError{Reason: Unknown, Err: errors.New("it speaks another subprotocol now")}
	}
	d.attempt++
	text, err := l.ask(ctx, line(wordResume, s.id, d.attempt, s.arrived()), s.opts.Handshake)
	if err != nil {
		return 0, final(err)
	}
	args, ok := words(text, wordResumed, 1)
	if ok {
		theirs, ok = number(args[0])
	}
	if !ok {
		return 0, &GapError{Reason: Broken, Err: errLine(text)}
	}
	_, _, err = s.claim(l, d.attempt, theirs)
	return theirs, err
}

// final makes a *GapError of what has ended a session in a handshake, and leaves what
// has not.
func final(err error) error {
	end := ending(err, false)
	switch {
	case errors.Is(err, errBroken):
		return &GapError{Reason: Broken, Err: err}
	case end == nil:
		return err
	case errors.As(end, new(*GapError)):
		return end
	}
	return &GapError{Reason: Unknown, Err: end}
}

func (d *dialler) ended(*session) {}

func (d *dialler) hopeless() bool { return false }

package resume

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/duetrpc/duet/peer"
)

// Sessions are those of an accepting end, of one Server for instance. All methods may be used
// concurrently.
type Sessions struct {
	opts *Options

	mu     sync.Mutex
	all    map[[sha256.Size]byte]*session // by what is made of their ids
	parked *simplelru.LRU[*session, *berth]
	bytes  int64             // of those that are parked
	shares map[string]*share // of the principals that have parked ones
	stats  Stats
}

// Stats are counts of Sessions since they were made, and what they hold now.
type Stats struct {
	Open        int   // sessions, parked ones included
	Parked      int   // sessions without a socket
	ParkedBytes int64 // what these hold to send again

	Opened  uint64
	Resumed uint64            // times that a session went on
	Lost    map[Reason]uint64 // sessions that were not ended in order
	Refused uint64            // handshakes that took no session up
}

// NewSessions returns Sessions without any. It panics with an *OptionError where o is wrong.
func NewSessions(o *Options) *Sessions {
	p := o.prepare()
	parked, _ := simplelru.NewLRU[*session, *berth](p.Parked+1, nil) // the only error is a size below one
	return &Sessions{opts: p, all: make(map[[sha256.Size]byte]*session), parked: parked, shares: make(map[string]*share)}
}

// Server returns a copy of opts, which may be nil, with which a peer.Server, or peer.Accept,
// has sessions with ends that ask for them, and plain connections with all others. What
// opts.Transport wraps is below a session. It is called before anything is served.
func (a *Sessions) Server(opts *peer.Options) *peer.Options {
	var p peer.Options
	if opts != nil {
		p = *opts
	}
	a.opts.Logger = or(a.opts.Logger, p.Logger)
	below := p.Transport
	p.WebSocket.Subprotocols = offer(p.WebSocket.Subprotocols)
	p.Transport = func(r *http.Request, t peer.Transport) (peer.Transport, error) {
		spoken := subprotocolOf(t)
		if below != nil {
			var err error
			if t, err = below(r, t); t == nil || err != nil {
				return nil, err
			}
		}
		if spoken != Subprotocol {
			return t, nil
		}
		return a.Accept(r.Context(), t)
	}
	return &p
}

// Stats returns the counts.
func (a *Sessions) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Lost = maps.Clone(s.Lost)
	s.Open, s.Parked, s.ParkedBytes = len(a.all), a.parked.Len(), a.bytes
	return s
}

// Accept reads the handshake of the other end from t. It returns a new session, or t itself
// where that is to be plain, or nil, where t now belongs to a session that is there
// already, or was closed. Of ctx the principal counts, and its end until Accept returns.
// With an error t is to be closed, for that.
func (a *Sessions) Accept(ctx context.Context, t peer.Transport) (peer.Transport, error) {
	l := newLink(t)
	text, err := l.readLine(ctx, a.opts.Handshake)
	if err != nil {
		return nil, broken(err)
	}
	principal := peer.PrincipalFrom(ctx)
	if string(text) == wordOpen {
		if principal == "" && !a.opts.Anonymous {
			a.opts.logger().Warn("resume: no session without a principal: see peer.WithPrincipal and Options.Anonymous")
			return t, l.Write(ctx, line(wordPlain))
		}
		return a.open(ctx, l, principal)
	}
	args, ok := words(text, wordResume, 3)
	if ok && isID(args[0]) {
		attempt, ok := number(args[1])
		theirs, fine := number(args[2])
		if ok && fine {
			a.resume(l, principal, string(args[0]), attempt, theirs)
			return nil, nil
		}
	}
	return nil, &GapError{Reason: Broken, Err: errLine(text)}
}

// broken has what the other end did wrong in a handshake closed as that.
func broken(err error) error {
	if errors.Is(err, errBroken) {
		return &GapError{Reason: Broken, Err: err}
	}
	return err
}

// idSize is the length of an id: 128 random bits, as hexadecimal digits.
const idSize = 32

// keyOf is what a session is found by. It tells nothing of how much of an id was right.
func keyOf(id string) [sha256.Size]byte { return sha256.Sum256([]byte(id)) }

// open begins a session.
func (a *Sessions) open(ctx context.Context, l *link, principal string) (peer.Transport, error) {
	var random [idSize / 2]byte
	_, _ = rand.Read(random[:]) // it does not fail
	id := hex.EncodeToString(random[:])
	s := newSession(a.opts, id, &acceptor{sessions: a, principal: principal})
	s.link = l
	a.mu.Lock()
	a.all[keyOf(id)] = s
	a.stats.Opened++
	a.mu.Unlock()
	// Where there is a socket all the same, the other end was faster: it has heard of the
	// session, lost the socket, and taken the session up over this one.
	if !s.proceed(l, 0, line(wordOpened, id, uint64(a.opts.Park/time.Millisecond))) && s.finish(errClosed, true) {
		return nil, errors.New("resume: the socket was lost in the handshake")
	}
	return s, nil
}

// find returns the session with an id, of a principal, or nil.
func (a *Sessions) find(id, principal string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.all[keyOf(id)]
	if s == nil || subtle.ConstantTimeCompare([]byte(s.id), []byte(id)) != 1 || s.role.(*acceptor).principal != principal {
		return nil
	}
	return s
}

// resume has a session go on over l.
func (a *Sessions) resume(l *link, principal, id string, attempt, theirs uint64) {
	refuse := func(why *GapError) {
		a.mu.Lock()
		a.stats.Refused++
		a.mu.Unlock()
		a.opts.logger().Info("resume: handshake refused", slog.Any("error", why))
		_ = l.Close(why)
		l.gone() // an upgrade is under way as long as its socket is there
	}
	s := a.find(id, principal)
	if s == nil {
		refuse(&GapError{Reason: Unknown})
		return
	}
	mine, old, err := s.claim(l, attempt, theirs)
	var gap *GapError
	switch {
	case errors.As(err, &gap) && gap.Reason == Replaced: // by a newer one, which goes on
		refuse(gap)
		return
	case err != nil:
		if gap != nil {
			s.end(gap)
		}
		refuse(&GapError{Reason: Unknown})
		return
	}
	a.unpark(s)
	if old != nil {
		_ = old.Close(&GapError{Reason: Replaced})
		defer old.gone() // likewise
	}
	if s.proceed(l, theirs, line(wordResumed, mine)) {
		a.mu.Lock()
		a.stats.Resumed++
		a.mu.Unlock()
		s.log(slog.LevelDebug, "resume: session goes on")
	}
}

package peer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Redialer is the one place where a [Client] dials: it has the pauses between attempts,
// and tells the states. ClientOptions.Session gets it. Its methods may be used
// concurrently; then they share the pauses.
type Redialer struct {
	c *Client

	mu      sync.Mutex
	backoff backoff.ExponentialBackOff
	dialled bool // the first attempt, which waits for nothing, was made
	waits   bool // the next attempt waits until due
	due     time.Time
	hurry   chan struct{} // closed by Client.Redial; nil while nobody waits
	attempt int           // since the client was connected
	good    time.Time     // when what is connected was; zero where nothing is
	last    error         // why there is no connection
}

// init gives each pause its bound. A pause is uniform between zero and that ("full
// jitter"): the library takes the mean, which it may miss by all of it.
func (r *Redialer) init(c *Client) {
	r.c = c
	r.backoff = backoff.ExponentialBackOff{
		InitialInterval: max(c.opts.FirstWait/2, 1), MaxInterval: max(c.opts.MaxWait/2, 1),
		RandomizationFactor: 1, Multiplier: 2,
	}
	r.backoff.Reset()
}

// Dial makes a socket. It tries until it has one, with a pause before every attempt but
// the very first of the Client. lost is why the socket before it was lost, or nil for the
// first of a connection. The error is why ctx ended, ErrClosed, ErrShutdown, or the
// error GiveUp gave up with: then the Client has ended.
func (r *Redialer) Dial(ctx context.Context, lost error) (Transport, error) {
	if lost != nil {
		wait := r.lose(lost)
		r.c.teller.state(ClientState{Phase: Interrupted, Wait: wait, Err: lost})
	}
	for {
		if err := r.pause(ctx); err != nil {
			return nil, err
		}
		attempt := r.begin()
		r.c.teller.state(ClientState{Phase: Dialling, Attempt: attempt})
		t, err := r.try(ctx)
		if over := r.over(ctx); over != nil {
			if t != nil {
				r.c.close(t)
			}
			return nil, over
		}
		if err == nil {
			return t, nil
		}
		if !r.failed(err) {
			return nil, err
		}
	}
}

// Resumed tells that the session goes on over what Dial returned last.
func (r *Redialer) Resumed() {
	r.succeed()
	r.c.teller.state(ClientState{Phase: Resumed})
}

// Failed tells that what Dial returned last came to nothing, in a handshake of the session:
// then that was a failed attempt. It reports whether there are to be others.
func (r *Redialer) Failed(err error) (more bool) { return r.failed(err) }

// over is why nothing is dialled any more, or nil.
func (r *Redialer) over(ctx context.Context) error {
	switch {
	case r.c.ctx.Err() != nil:
		return context.Cause(r.c.ctx)
	case ctx.Err() != nil:
		return contextError(ctx)
	}
	return nil
}

// try makes one attempt.
func (r *Redialer) try(ctx context.Context) (t Transport, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.c.opts.DialTimeout)
	defer cancel()
	defer context.AfterFunc(r.c.ctx, cancel)() // ctx need not be the client's
	err = <-r.c.try("Dial", func() (err error) {
		t, err = r.c.opts.Dial(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, errors.New("peer: Dial returned no Transport")
	}
	return t, nil
}

// failed notes that an attempt came to nothing, and reports whether there are to be
// others.
func (r *Redialer) failed(err error) bool {
	more := local(err) || !r.c.givesUp(err) // it is not asked of what this end has done
	r.mu.Lock()
	attempt := r.attempt
	r.mu.Unlock()
	var wait time.Duration
	if more {
		wait = r.lose(err)
	}
	r.c.teller.state(ClientState{Phase: DialFailed, Attempt: attempt, Wait: wait, Err: err})
	r.c.teller.log(slog.LevelWarn, "duet: no connection", slog.Int("attempt", attempt),
		slog.Duration("next", wait), slog.Any("error", forLog(err)))
	if !more {
		r.c.end(err)
	}
	return more
}

// pause waits until the next attempt may begin.
func (r *Redialer) pause(ctx context.Context) error {
	r.mu.Lock()
	if r.dialled && !r.waits {
		r.wait()
	}
	left := time.Duration(0)
	if r.waits {
		left = time.Until(r.due)
	}
	hurry := make(chan struct{})
	r.hurry = hurry
	r.mu.Unlock()
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-hurry:
		case <-ctx.Done():
		case <-r.c.ctx.Done():
		}
	}
	return r.over(ctx)
}

// now ends the pause that somebody waits for.
func (r *Redialer) now() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hurry != nil {
		r.due = time.Now()
		close(r.hurry)
		r.hurry = nil
	}
}

// begin counts an attempt.
func (r *Redialer) begin() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialled, r.waits, r.hurry = true, false, nil
	r.attempt++
	return r.attempt
}

// succeed notes that there is a connection, or that it goes on.
func (r *Redialer) succeed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt, r.good = 0, time.Now()
}

// good is how many times FirstWait a connection, or a socket, has to live to be a good
// one.
const good = 10

// lose notes why there is no connection, or socket, and returns the pause before the
// next. Only what was good for a while has the pauses begin anew: so a server that takes
// connections and drops them is not dialled more often than one that takes none, and a
// network that changes now and then is not taken for one.
func (r *Redialer) lose(why error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = why
	if !r.good.IsZero() && time.Since(r.good) >= min(good*r.c.opts.FirstWait, r.c.opts.MaxWait) {
		r.backoff.Reset()
	}
	r.good = time.Time{}
	return r.wait()
}

// wait has the next attempt wait, and returns for how long. r.mu is held.
func (r *Redialer) wait() time.Duration {
	pause := r.backoff.NextBackOff()
	r.waits, r.due = true, time.Now().Add(pause)
	return pause
}

// reason is why there is no connection, nil where none was tried.
func (r *Redialer) reason() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

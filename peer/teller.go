package peer

import (
	"context"
	"log/slog"
	"sync"
)

// mostStates is how many states, and lines for the log, wait for an OnState that is slow.
const mostStates = 256

// teller hands the states of a Client to OnState, and lines to its logger, from a
// goroutine of its own, which lives as long as there is something to tell: both may
// block, and use the Client.
type teller struct {
	c *Client

	mu      sync.Mutex
	queue   []func()
	running bool
	ended   bool // nothing is told any more
}

// state tells OnState.
func (t *teller) state(s ClientState) {
	f := t.c.opts.OnState
	t.mu.Lock()
	defer t.mu.Unlock()
	if f != nil {
		t.add(func() { f(s) })
	}
	if s.Phase == Ended {
		t.ended = true
	}
}

// log writes a line.
func (t *teller) log(level slog.Level, msg string, attrs ...slog.Attr) {
	if t.c.opts.unobserved {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(func() { t.c.opts.Logger.LogAttrs(context.Background(), level, msg, attrs...) })
}

// add queues f. What is newest counts most. t.mu is held.
func (t *teller) add(f func()) {
	if t.ended {
		return
	}
	if len(t.queue) == mostStates {
		t.queue = t.queue[1:]
	}
	t.queue = append(t.queue, f)
	if !t.running {
		t.running = true
		t.c.goroutines.Go(t.run)
	}
}

// run runs what is queued. User code may end its goroutine (runtime.Goexit); then
// another one goes on.
func (t *teller) run() {
	done := false
	defer func() {
		if !done {
			t.c.goroutines.Go(t.run)
		}
	}()
	for {
		f := t.next()
		if f == nil {
			done = true
			return
		}
		t.hand(f)
	}
}

func (t *teller) next() func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.running, t.queue = false, nil
		return nil
	}
	f := t.queue[0]
	t.queue[0] = nil
	t.queue = t.queue[1:]
	return f
}

// hand runs f. The panic of OnState is logged, and that of a logger then is not: there
// is nobody left to tell.
func (t *teller) hand(f func()) {
	defer func() {
		if v := recover(); v != nil {
			defer func() { _ = recover() }()
			t.c.opts.Logger.LogAttrs(context.Background(), slog.LevelError, "duet: panic", panicAttrs("OnState", v)...)
		}
	}()
	f()
}

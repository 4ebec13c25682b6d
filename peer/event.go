package peer

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// EventKind says what an [Event] is about.
type EventKind uint8

// The kinds of events.
const (
	RefusedMessage      EventKind = iota // a message that could not be read, answered or not
	RefusedNotification                  // a notification that did not run, or failed
	LateResponse                         // an answer to a call whose caller gave up
	UnknownResponse                      // an answer to no call of ours, or one without a usable id
	BrokenResponse                       // an answer that is none; the call it names, if any, failed
	DroppedAnswer                        // an answer of ours that could not leave
	OverLimit                            // a bound was passed: a call refused, an answer in an array replaced, or the connection ended
	UnknownCancel                        // a cancel that names no running call, or one that may not be cancelled
	OrderWait                            // a call or an answer did not wait any longer for a notification
	UnknownToken                         // progress, or a part of a stream, for a call that is over or that there never was
	DroppedProgress                      // progress that came faster than its function returned; what came last is kept
	ReservedCode                         // a handler chose an error code inside the reserved range
	Lost                                 // events and log lines that were dropped, since what gets them was too slow
	eventKinds
)

var eventNames = [eventKinds]string{
	"refused message", "refused notification", "late response", "unknown response", "broken response",
	"dropped answer", "over limit", "unknown cancel", "order wait",
	"unknown token", "dropped progress", "reserved code", "lost events",
}

// String returns the name of the kind in words.
func (k EventKind) String() string {
	if k < eventKinds {
		return eventNames[k]
	}
	return "unknown event"
}

// Event is something that never became an answer. It holds no params, results
// or error data.
type Event struct {
	Kind   EventKind
	Method string        // a registered method, an own call's, or "_OTHER"
	Note   string        // of an own call
	After  time.Duration // LateResponse: since the call was made; OrderWait: how long, 0 where answers that wait were too large
	Late   time.Duration // LateResponse: since its caller gave up
	Err    error         // what was wrong, where that is known
}

const (
	eventQueue = 256
	logPause   = time.Second // between two log lines of one kind
)

// events counts events and hands them, and lines for the log, on from a goroutine
// of its own, which lives as long as there is something to do: neither the logger
// nor the user's function may ever hold up the reader or an answer, and both may
// use the connection.
type events struct {
	c      *Conn
	counts [eventKinds]atomic.Uint64

	mu      sync.Mutex
	queue   []notice
	running bool
	lost    bool

	// Only the goroutine uses these.
	logged     [eventKinds]time.Time
	suppressed [eventKinds]int
}

// notice is an event, or a line for the log.
type notice struct {
	event Event
	line  *line
}

type line struct {
	level slog.Level
	msg   string
	attrs []slog.Attr
}

func (e *events) add(ev Event) {
	e.counts[ev.Kind].Add(1)
	e.enqueue(notice{event: ev})
}

func (e *events) enqueue(n notice) {
	if e.c.opts.unobserved {
		return
	}
	e.mu.Lock()
	if len(e.queue) >= eventQueue {
		e.counts[Lost].Add(1)
		e.lost = true
		e.mu.Unlock()
		return
	}
	e.queue = append(e.queue, n)
	start := !e.running
	e.running = true
	e.mu.Unlock()
	if start && !e.c.spawn(e.run) {
		e.mu.Lock()
		e.running, e.queue = false, nil
		e.mu.Unlock()
	}
}

// run hands on what is queued. User code may end its goroutine (runtime.Goexit);
// then another one goes on.
func (e *events) run() {
	done := false
	defer func() {
		if !done {
			e.c.spawn(e.run)
		}
	}()
	for {
		n, ok := e.next()
		if !ok {
			done = true
			return
		}
		e.hand(n)
	}
}

func (e *events) next() (n notice, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case len(e.queue) > 0:
		n, e.queue[0] = e.queue[0], notice{}
		e.queue = e.queue[1:]
		return n, true
	case e.lost:
		e.lost = false
		return notice{event: Event{Kind: Lost, Method: otherMethod}}, true
	}
	e.running, e.queue = false, nil
	return notice{}, false
}

func (e *events) hand(n notice) {
	if n.line != nil {
		e.write(n.line.level, n.line.msg, n.line.attrs...)
		return
	}
	e.log(n.event)
	if f := e.c.opts.Events; f != nil {
		e.c.guard("Options.Events", func() { f(n.event) })
	}
}

// write gives a line to the logger. One that panics loses the line: there is
// nobody left to tell.
func (e *events) write(level slog.Level, msg string, attrs ...slog.Attr) {
	defer func() {
		if recover() != nil {
			e.counts[Lost].Add(1)
		}
	}()
	e.c.opts.Logger.LogAttrs(context.Background(), level, msg, attrs...)
}

// log writes one line per kind and second.
func (e *events) log(ev Event) {
	now := time.Now()
	if last := e.logged[ev.Kind]; !last.IsZero() && now.Sub(last) < logPause {
		e.suppressed[ev.Kind]++
		return
	}
	e.logged[ev.Kind] = now
	attrs := []slog.Attr{slog.String("method", ev.Method)}
	if ev.Note != "" {
		attrs = append(attrs, slog.String("note", ev.Note))
	}
	if ev.After > 0 {
		attrs = append(attrs, slog.Duration("after", ev.After))
	}
	if ev.Err != nil {
		attrs = append(attrs, slog.Any("error", forLog(ev.Err)))
	}
	if n := e.suppressed[ev.Kind]; n > 0 {
		attrs = append(attrs, slog.Int("suppressed", n))
		e.suppressed[ev.Kind] = 0
	}
	level := slog.LevelWarn
	switch ev.Kind {
	case DroppedAnswer, UnknownCancel: // what happens when the other end goes, or gives up late
		level = slog.LevelInfo
	case LateResponse, UnknownToken: // what follows when this end has given up
		level = slog.LevelDebug
	}
	e.write(level, "duet: "+ev.Kind.String(), attrs...)
}

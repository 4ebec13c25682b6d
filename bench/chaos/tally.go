package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

// tally counts what both ends did, and what went wrong. It may be used concurrently.
type tally struct {
	calls, callbacks, notifications, items atomic.Int64 // that came to a good end
	cancelled                              atomic.Int64
	open                                   atomic.Int64 // calls, streams and handlers that have not ended

	mu      sync.Mutex
	cuts    map[kind]int
	failed  map[pending.State]int // calls and streams
	untyped int                   // of those, without a *peer.CallError
	wrong   int                   // answers and texts that are not what was sent
	gaps    int                   // connections that ended, where they must not
	notes   []string              // what to look at, the first of many

	lost, doubled, reordered int // of single streams
	hung, leaked             int
}

// mostNotes bounds what is kept to look at.
const mostNotes = 20

func newTally() *tally {
	return &tally{cuts: make(map[kind]int), failed: make(map[pending.State]int)}
}

// cut counts a cut.
func (t *tally) cut(k kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cuts[k]++
}

// count is the number of cuts.
func (t *tally) count() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.cuts {
		n += of
	}
	return n
}

// fail counts a call or a stream that failed, and returns how far it got.
func (t *tally) fail(what string, err error) pending.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	var failed *peer.CallError
	if !errors.As(err, &failed) {
		t.untyped++
		t.note(what, err)
		return pending.Sent
	}
	t.failed[failed.Sent]++
	t.note(what, err)
	return failed.Sent
}

// bad counts what arrived and is not what was sent.
func (t *tally) bad(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong++
	t.note(what, errors.New("it is not what was sent"))
}

// event counts what never became an answer and should not have been there. An answer to no
// call is one that came twice: whoever sends it, an answer is what it takes from a call.
func (t *tally) event(e peer.Event) {
	switch e.Kind {
	case peer.UnknownResponse:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.doubled++
		t.note(e.Kind.String(), e.Err)
	case peer.RefusedMessage, peer.RefusedNotification, peer.BrokenResponse, peer.OverLimit:
		t.bad(fmt.Sprintf("%v %q: %v", e.Kind, e.Method, e.Err))
	}
}

// gap counts a connection that ended.
func (t *tally) gap(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gaps++
	t.note(what, err)
}

// hang counts what has not ended in time.
func (t *tally) hang(what string, n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hung += n
	t.note(what, err)
}

// leave counts what is left.
func (t *tally) leave(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaked += n
	if n > 0 {
		t.note(what, fmt.Errorf("%d are left", n))
	}
}

// settle adds what was found of one flow whose messages must all be there, if all is set.
func (t *tally) settle(what string, f *flow, all bool) {
	doubled, reordered := f.faults()
	lost := 0
	if all {
		lost = f.lost()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost += lost
	t.doubled += doubled
	t.reordered += reordered
	if lost+doubled+reordered > 0 {
		t.note(what, fmt.Errorf("%d lost, %d doubled, %d reordered", lost, doubled, reordered))
	}
}

// note keeps something to look at. t.mu is held.
func (t *tally) note(what string, err error) {
	if len(t.notes) < mostNotes {
		t.notes = append(t.notes, fmt.Sprintf("%s: %v", what, err))
	}
}

// failures is how many calls and streams failed.
func (t *tally) failures() int {
	n := t.untyped
	for _, of := range t.failed {
		n += of
	}
	return n
}

// figures is the line that a run ends with.
func (t *tally) figures() string {
	return fmt.Sprintf("cuts %d calls %d callbacks %d notifications %d items %d lost %d doubled %d reordered %d hung %d leaked %d",
		t.count(), t.calls.Load(), t.callbacks.Load(), t.notifications.Load(), t.items.Load(),
		t.allLost(), t.doubled, t.reordered, t.hung, t.leaked)
}

// allLost are messages that have not arrived, calls and streams that failed, what arrived
// broken, and connections that ended.
func (t *tally) allLost() int { return t.lost + t.failures() + t.wrong + t.gaps }

// plain is the line that follows where nothing was resumed.
func (t *tally) plain() string {
	return fmt.Sprintf("without resume: failed %d, not sent %d, maybe sent %d, sent %d, untyped %d; notifications lost %d; both are expected and count as lost above",
		t.failures(), t.failed[pending.NotSent], t.failed[pending.MaybeSent], t.failed[pending.Sent], t.untyped, t.lost)
}

// good is the verdict.
func (t *tally) good(resumed bool) bool {
	if resumed {
		return t.allLost()+t.doubled+t.reordered+t.hung+t.leaked == 0
	}
	return t.untyped+t.wrong+t.doubled+t.hung+t.leaked == 0
}

// explain prints what to look at.
func (t *tally) explain(w io.Writer) {
	for _, text := range t.notes {
		fmt.Fprintln(w, "chaos:", text)
	}
}

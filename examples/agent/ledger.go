package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// problems is what did not match.
type problems []string

// add adds one, up to a bound: an agent that is wrong all the time must not fill
// the memory with that.
func (p *problems) add(format string, args ...any) {
	if len(*p) < 20 {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// served is what the client did and heard on behalf of one run, and so the
// report it expects. Read holds nothing; read does, by path.
type served struct {
	Report
	read map[string]Digest
	said hash.Hash
}

func newServed(run int) *served {
	return &served{Report: Report{Run: run}, read: make(map[string]Digest), said: sha256.New()}
}

// run has the agent work on a task and compares its report with what was served
// for it. A run is open until its report is there. run reports false if none came.
func (t *tools) run(ctx context.Context, agent peer.Caller, goal string) bool {
	t.mu.Lock()
	t.runs++
	want := newServed(t.runs)
	t.open[want.Run] = want
	t.mu.Unlock()

	task := Task{Run: want.Run, Goal: goal}
	if goal == goalRead {
		task.Talks = int(t.talks.Milliseconds())
	}
	words := agentRun.Call(ctx, agent, task,
		stream.Calling(peer.OnProgress(func(p peer.Progress) { t.progress(want.Run, p) })))
	for word, err := range words.All() {
		if err != nil {
			break // Result has it, too
		}
		t.hear(want, word)
	}
	got, err := words.Result()

	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, want.Run)
	if err != nil {
		t.problems.add("run %d: %v", want.Run, err)
		return false
	}
	t.compare(want, got)
	return true
}

// compare finds what does not match. t.mu is held.
func (t *tools) compare(want *served, got Report) {
	same := func(what string, got, want any) {
		if got != want {
			t.problems.add("%s: reported %v, was %v", what, got, want)
		}
	}
	run := fmt.Sprintf("run %d: ", want.Run)
	same(run+"number", got.Run, want.Run)
	same(run+"progress steps", got.Steps, want.Steps)
	same(run+"files listed", got.Files, want.Files)
	same(run+"bytes listed", got.Bytes, want.Bytes)
	same(run+"words", got.Words, want.Words)
	same(run+"SHA-256 of the words", got.Said, hex.EncodeToString(want.said.Sum(nil)))
	same(run+"files read", len(got.Read), len(want.read))
	for _, d := range got.Read {
		same(run+d.Path, d, want.read[d.Path])
		t.matched.files++
		if d.Cut {
			t.matched.cut++
		}
	}
	t.matched.reports++
	t.matched.words += got.Words
}

// progress takes one step of a run. They must come one after the other, and all
// before the report.
func (t *tools) progress(run int, p peer.Progress) {
	_ = t.note(run, func(s *served) { // which adds what is wrong
		if p.Done != float64(s.Steps+1) {
			t.problems.add("run %d: step %v of progress came after step %d", run, p.Done, s.Steps)
		}
		s.Steps++
		t.matched.steps++
	})
}

// hear takes one word of a run.
func (t *tools) hear(s *served, word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Words++
	s.said.Write([]byte(word))
	t.heard(word)
}

// note adds to what was served for a run.
func (t *tools) note(run int, add func(*served)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[run]
	if s == nil {
		t.problems.add("run %d is not open, and something came for it", run)
		return &peer.Error{Code: peer.InvalidParams, Message: fmt.Sprintf("run %d is not open", run)}
	}
	add(s)
	return nil
}

// found says what was compared, and what of it did not match.
func (t *tools) found() (compared string, wrong problems) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.matched
	compared = fmt.Sprintf("%d reports, %d files by their SHA-256 (%d cut at %d KiB), %d steps of progress in order, %d words",
		m.reports, m.files, m.cut, readCap>>10, m.steps, m.words)
	return compared, slices.Clone(t.problems)
}

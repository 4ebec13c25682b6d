package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// The two ways through the connection.
const (
	toAgent = iota
	toClient
)

// tap is the client's Transport, and shows each message on its way. It reads the
// ids off the wire, so it checks the library too: each call has to be answered,
// once, under its own id.
type tap struct {
	peer.Transport

	mu       sync.Mutex
	screen   *screen
	env      codec.Envelope
	ways     [2]traffic
	words    int // that were heard
	problems problems
}

// traffic is what went one way. An answer counts for the way of its call, and
// its latency is the time between the two at this end.
type traffic struct {
	calls, notifications int
	items                int // of streams, which are notifications too
	overtook             int // answers that came before that of an earlier call
	took                 []time.Duration
	open                 []asked // in the order they were sent
}

// asked is a call that waits for its answer.
type asked struct {
	id, method string
	at         time.Time
}

// Read implements peer.Transport.
func (t *tap) Read(ctx context.Context, buf []byte) ([]byte, error) {
	at := len(buf)
	buf, err := t.Transport.Read(ctx, buf)
	if err == nil {
		t.see(toClient, buf[at:])
	}
	return buf, err
}

// Write implements peer.Transport. A call is seen before it leaves, and so
// before its answer.
func (t *tap) Write(ctx context.Context, msgs ...[]byte) error {
	for _, m := range msgs {
		t.see(toAgent, m)
	}
	return t.Transport.Write(ctx, msgs...)
}

// see takes note of what one envelope holds, and draws it.
func (t *tap) see(way int, text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.env.Decode(text, nil); err != nil || t.env.Fault != codec.NoFault {
		t.problems.add("an envelope that is not JSON-RPC")
		return
	}
	for i := range t.env.Messages {
		m, sent := &t.env.Messages[i], &t.ways[way]
		switch m.Kind {
		case codec.Call:
			sent.calls++
			sent.open = append(sent.open, asked{m.ID.String(), string(m.Method), time.Now()})
			t.screen.message(way, fmt.Sprintf("call   %-2v %s", m.ID, m.Method), "", m.Params)
		case codec.Notification:
			if isItem(m) {
				sent.items++ // the screen shows them in its own way
				continue
			}
			sent.notifications++
			t.screen.message(way, fmt.Sprintf("notify    %s", m.Method), "", m.Params)
		case codec.Response:
			t.answer(way, m)
		default:
			t.problems.add("%v: %v", m.Kind, m.Fault)
		}
	}
}

// isItem reports whether m has a word of the agent's. Progress is an object.
func isItem(m *codec.Message) bool {
	_, ok := codec.Unquote(codec.Find(m.Params, "value"))
	return ok && string(m.Method) == "$/progress"
}

// settled waits until every call of the client's is answered.
func (t *tap) settled(ctx context.Context) {
	for ctx.Err() == nil {
		t.mu.Lock()
		open := len(t.ways[toAgent].open)
		t.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// heard shows a word of the agent's.
func (t *tap) heard(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words++
	t.screen.word(word)
}

// cut shows that the connection is cut.
func (t *tap) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.remark("✂ cut after word %d", t.words)
}

// goesOn shows that the session does.
func (t *tap) goesOn(after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.remark("✓ goes on %.1f ms later with word %d", float64(after)/float64(time.Millisecond), t.words+1)
}

// cancelled says what became of a session that was interrupted.
func (t *tap) cancelled() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.say(" …")
	sent := &t.ways[toAgent]
	t.screen.stopped(len(sent.took), len(sent.open), t.ways[toClient].items)
}

// answer finds the call that m answers. Those before it that are still open have
// been overtaken.
func (t *tap) answer(way int, m *codec.Message) {
	sent := &t.ways[1-way]
	i := slices.IndexFunc(sent.open, func(a asked) bool { return a.id == m.ID.String() })
	if i < 0 {
		t.problems.add("an answer to %v, which is no open call", m.ID)
		return
	}
	call, remark, text := sent.open[i], "", m.Result
	if i > 0 {
		sent.overtook++
		remark = "before " + sent.open[0].id
	}
	if m.Error != nil {
		text = []byte(m.Error.Error())
	}
	sent.took = append(sent.took, time.Since(call.at))
	sent.open = slices.Delete(sent.open, i, i+1)
	t.screen.message(way, fmt.Sprintf("answer %-2s %s", call.id, call.method), remark, text)
}

// sum draws the summary and returns what was wrong.
func (t *tap) sum() problems {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.summary(&t.ways[toAgent], &t.ways[toClient])
	for _, way := range t.ways {
		for _, call := range way.open {
			t.problems.add("call %s of %s was not answered", call.id, call.method)
		}
	}
	return t.problems
}

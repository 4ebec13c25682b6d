package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// conversation is one case on one connection. Everything in it belongs to the
// goroutine that runs the case; a second one reads and hands over events.
type conversation struct {
	ctx    context.Context // ends when the case must be over
	quiet  time.Duration
	probe  probe
	client *client
	events chan event

	outcomes []Alternative
	caps     captures
	messages []message
	pings    [][]byte // sent, not answered yet
	problems []string // against the rules for every case

	hopeless  time.Time // when to stop, once no outcome can be reached
	sentClose bool
	probed    bool
	answers   int // to the probe
	ended     bool
	code      int // of the server's close, once ended
}

func (v *conversation) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// read hands over events until the connection has ended or the case is over.
func (v *conversation) read(over <-chan struct{}) {
	for {
		ev := v.client.next()
		select {
		case v.events <- ev:
		case <-over:
			return
		}
		if ev.op == opClose {
			return
		}
	}
}

// play sends the items. It stops early when the connection ends or something
// waited for does not come; what that means is for judge to say.
func (v *conversation) play(items []Item) {
	for i, it := range items {
		switch {
		case it.wait > 0:
			if !v.until(func() bool { return v.count(it.wait) }) {
				v.inVain(i, it)
				return
			}
		case it.capture != "":
			if !v.until(func() bool { return v.take(it.capture, it.method) }) {
				v.inVain(i, it)
				return
			}
		default:
			for _, f := range it.frames {
				if !v.send(v.fill(f)) {
					return
				}
			}
		}
	}
}

func (v *conversation) inVain(i int, it Item) {
	if !v.ended {
		v.problem("send[%d] %s waited in vain", i, it)
	}
}

// fill puts captured ids in the place of their names.
func (v *conversation) fill(f frame) frame {
	for name, id := range v.caps {
		f.payload = bytes.ReplaceAll(f.payload, []byte("${"+name+"}"), id.raw)
	}
	return f
}

// send reports false when the connection takes no more. That is no fault by
// itself: the server may have closed, and the reader knows how.
func (v *conversation) send(f frame) bool {
	if err := v.client.write(f); err != nil {
		if v.ctx.Err() != nil {
			v.problem("the server takes no more: %v", err)
		}
		return false
	}
	switch f.op {
	case opPing:
		v.pings = append(v.pings, f.payload)
	case opClose:
		v.sentClose = true
	}
	return true
}

// count marks n messages that no wait or capture has counted, if they are there.
func (v *conversation) count(n int) bool {
	var fresh []*message
	for i := range v.messages {
		if m := &v.messages[i]; !m.used && len(fresh) < n {
			fresh = append(fresh, m)
		}
	}
	if len(fresh) < n {
		return false
	}
	for _, m := range fresh {
		m.used = true
	}
	return true
}

// take keeps the id of a request that no wait or capture has counted.
func (v *conversation) take(name, method string) bool {
	for i := range v.messages {
		m := &v.messages[i]
		if id, ok := m.isRequest(method); ok && !m.used {
			m.used = true
			v.caps[name] = id
			return true
		}
	}
	return false
}

// until takes events until done holds. It reports false when that can not
// happen any more or the time is over.
func (v *conversation) until(done func() bool) bool {
	for !done() {
		if v.ended || !v.next(v.patience(false)) {
			return false
		}
	}
	return true
}

// settle takes events until it is certain that no more belong to the case.
// Messages may be slower than the probe (a handler that sleeps), so the probe
// leaves when some outcome is complete; its answer is then the barrier for
// what is under way, and the quiet after it catches what comes unasked.
func (v *conversation) settle() {
	for !v.ended {
		complete := v.complete()
		if complete && !v.probed {
			v.probed = true
			v.send(textFrame(v.probe.text))
		}
		if !v.next(v.patience(complete && v.answers > 0)) {
			return
		}
	}
}

// patience is how long to wait for the next event; negative: as long as the
// case may take. Where no outcome can be reached the case has failed, and only
// a moment is spent on what else comes, however much that is.
func (v *conversation) patience(settled bool) time.Duration {
	if v.possible() {
		if settled {
			return v.quiet
		}
		return -1
	}
	if v.hopeless.IsZero() {
		v.hopeless = time.Now().Add(v.quiet)
	}
	return max(0, time.Until(v.hopeless))
}

// next takes one event. It reports false when none came in time.
func (v *conversation) next(wait time.Duration) bool {
	var limit <-chan time.Time
	if wait >= 0 {
		limit = time.After(wait)
	}
	select {
	case ev := <-v.events:
		v.record(ev)
		return true
	case <-limit:
	case <-v.ctx.Done():
	}
	return false
}

func (v *conversation) record(ev event) {
	switch ev.op {
	case opText, opBinary:
		m := messageOf(ev)
		if ok, problem := v.probe.answers(m); ok && v.probed {
			if v.answers++; problem != "" {
				v.problem("%s", problem)
			}
			if m.binary {
				v.problem("the answer to the probe %s", m.rule())
			}
			return
		}
		v.messages = append(v.messages, m)
		if rule := m.rule(); rule != "" {
			v.problem("message %d %s", len(v.messages), rule)
		}
	case opPong:
		// An unsolicited pong is legal (RFC 6455 section 5.5.3).
		if i := slices.IndexFunc(v.pings, func(p []byte) bool { return bytes.Equal(p, ev.payload) }); i >= 0 {
			v.pings = slices.Delete(v.pings, i, i+1)
		}
	case opClose:
		v.ended, v.code = true, ev.code
		if ev.fault != "" {
			v.problem("%s", ev.fault)
		} else if !v.sentClose && ev.code != noClose {
			// Owed by the protocol; without it the server would wait.
			v.send(frame{fin: true, op: opClose, payload: ev.payload})
		}
	}
}

// leave ends a connection that is still up, orderly, so that the end of one
// case is not a fault in the server's log.
func (v *conversation) leave() {
	if !v.ended && !v.sentClose {
		v.send(frame{fin: true, op: opClose, payload: binary.BigEndian.AppendUint16(nil, 1000)})
		for limit := time.Now().Add(v.quiet); !v.ended && v.next(max(0, time.Until(limit))); {
		}
	}
	v.client.conn.Close()
}

// fits says whether all messages so far belong to o; with whole also that none
// of o is missing.
func (v *conversation) fits(o Alternative, whole bool) bool {
	n, m := len(v.messages), len(o.Expect)
	if n > m || whole && n < m {
		return false
	}
	match := func(i, j int) bool { return o.Expect[j].match(v.messages[i], v.caps) }
	if o.Strict {
		return inOrder(n, m, match)
	}
	return assign(n, m, match)
}

// possible says whether further messages, or none, can lead to an outcome.
func (v *conversation) possible() bool {
	return slices.ContainsFunc(v.outcomes, func(o Alternative) bool { return v.fits(o, false) })
}

// complete says whether an outcome is reached if the connection stays up.
func (v *conversation) complete() bool {
	return slices.ContainsFunc(v.outcomes, func(o Alternative) bool { return o.Close == nil && v.fits(o, true) })
}

// reached returns the number of the first outcome that is reached, or -1.
func (v *conversation) reached() int {
	return slices.IndexFunc(v.outcomes, func(o Alternative) bool {
		if v.ended != (o.Close != nil) || v.ended && !slices.Contains(o.Close, v.code) {
			return false
		}
		return v.fits(o, true)
	})
}

// judge adds what is wrong at the end. It returns the outcome reached, or -1.
func (v *conversation) judge(forbid []*Pattern) int {
	for i, m := range v.messages {
		for _, p := range forbid {
			if p.match(m, v.caps) {
				v.problem("message %d is forbidden by %s", i+1, p)
			}
		}
	}
	n := v.reached()
	if n < 0 {
		v.explain()
	}
	if v.answers > 1 {
		v.problem("the probe was answered %d times", v.answers)
	}
	if !v.ended {
		if v.probed && v.answers == 0 {
			v.problem("the probe was not answered")
		}
		for _, p := range v.pings {
			v.problem("ping %q was not answered by a pong", p)
		}
		if err := v.ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
			v.problem("the case was not over in time")
		} else if err != nil {
			v.problem("stopped: %v", err)
		}
	}
	return n
}

// explain compares with the first expectation, the one a reader knows.
func (v *conversation) explain() {
	o := v.outcomes[0]
	switch {
	case v.ended && o.Close == nil:
		v.problem("the connection was closed %s, want it to stay up", closeText(v.code))
	case v.ended && !slices.Contains(o.Close, v.code):
		v.problem("the connection was closed %s, want one of %v", closeText(v.code), o.Close)
	case !v.ended && o.Close != nil:
		v.problem("the connection stayed up, want it closed with one of %v", o.Close)
	}
	if !v.fits(o, true) {
		v.compare(o)
	}
	if len(v.outcomes) > 1 {
		v.problem("and no alternative fits")
	}
}

// compare says where the messages differ from those of o.
func (v *conversation) compare(o Alternative) {
	before := len(v.problems)
	match := func(i, j int) bool { return o.Expect[j].match(v.messages[i], v.caps) }
	for i := range v.messages {
		if o.Strict && i < len(o.Expect) && !match(i, i) {
			v.problem("message %d is not the one expected there, %s", i+1, short(o.Expect[i].String()))
			return
		}
		if !slices.ContainsFunc(o.Expect, func(p *Pattern) bool { return p.match(v.messages[i], v.caps) }) {
			v.problem("message %d is not expected", i+1)
		}
	}
	for _, p := range o.Expect {
		if !slices.ContainsFunc(v.messages, func(m message) bool { return p.match(m, v.caps) }) {
			v.problem("never came: %s", short(p.String()))
		}
	}
	if len(v.problems) == before {
		v.problem("%d messages, want %d, one to one", len(v.messages), len(o.Expect))
	}
}

func closeText(code int) string {
	switch code {
	case noCode:
		return "with a close frame without a code"
	case noClose:
		return "without a close frame"
	}
	return fmt.Sprintf("with %d", code)
}

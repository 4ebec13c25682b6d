package wire

import (
	"bytes"
	"context"
	"encoding/binary"
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

// problem notes a fault. All of them are told, in the order they were seen.
func (v *conversation) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// read hands over events until the connection has ended or the case is over.
func (v *conversation) read(over <-chan struct{}) {
	for {
		ev := v.client.next()
		select {
		// The channel has room, so the server is read even while items are sent.
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

// inVain notes an item whose messages did not come. An end of the connection
// is left to judge, since an alternative may permit it.
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
	// Only now: a ping that did not leave is owed no pong.
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
		// Before the probe has left, its id is an id like any other.
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

package peer

import (
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
)

// otherMethod stands for every method that is not registered: names the other
// end makes up must not grow anything here.
const otherMethod = "_OTHER"

// Stats are counts of a connection since it began, and what it holds now.
type Stats struct {
	ReceivedMessages, ReceivedBytes uint64 // envelopes
	SentMessages, SentBytes         uint64 // envelopes of own calls and notifications, without the cancels that follow from contexts

	// Methods counts incoming requests by registered method. "_OTHER" stands for
	// all others, and for all where the Handler is neither a Registry nor a Chain
	// over one.
	Methods map[string]MethodStats

	// Events counts by kind what never became an answer.
	Events map[EventKind]uint64

	InFlight      int // incoming calls not yet answered
	Notifications int // incoming notifications queued or running
	Pending       int // own calls not yet answered
}

// MethodStats counts the requests of one method.
type MethodStats struct {
	Calls         uint64
	Notifications uint64
	Errors        uint64 // of them, answered with an error, or failed
}

// counters are the counts behind Stats.
type counters struct {
	receivedMessages, receivedBytes atomic.Uint64

	last *methodCounter // of the last request; the reader's

	mu       sync.Mutex
	methods  map[*entry]*methodCounter // nil until needed; the nil entry is "_OTHER"
	reserved map[codec.Code]bool       // codes reported as ReservedCode
}

type methodCounter struct {
	entry                        *entry
	calls, notifications, errors atomic.Uint64
}

func (s *counters) received(bytes int) {
	s.receivedMessages.Add(1)
	s.receivedBytes.Add(uint64(bytes))
}

func (s *counters) of(e *entry) *methodCounter {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.methods[e]
	if m == nil {
		m = &methodCounter{entry: e}
		if s.methods == nil {
			s.methods = make(map[*entry]*methodCounter)
		}
		s.methods[e] = m
	}
	return m
}

// request counts a request. The reader calls it: mostly for the method it was
// called for before.
func (s *counters) request(e *entry, notification bool) {
	if s.last == nil || s.last.entry != e {
		s.last = s.of(e)
	}
	if notification {
		s.last.notifications.Add(1)
	} else {
		s.last.calls.Add(1)
	}
}

// failed counts an error.
func (s *counters) failed(e *entry) { s.of(e).errors.Add(1) }

// maxReserved bounds the codes that are remembered as reported.
const maxReserved = 64

// firstUse reports whether code was not reported before.
func (s *counters) firstUse(code codec.Code) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserved[code] || len(s.reserved) >= maxReserved {
		return false
	}
	if s.reserved == nil {
		s.reserved = make(map[codec.Code]bool)
	}
	s.reserved[code] = true
	return true
}

// Stats returns the counts of the connection.
func (c *Conn) Stats() Stats {
	s := Stats{
		ReceivedMessages: c.stats.receivedMessages.Load(),
		ReceivedBytes:    c.stats.receivedBytes.Load(),
		Methods:          map[string]MethodStats{},
		Events:           map[EventKind]uint64{},
		Pending:          c.calls.Len(),
	}
	for k := range eventKinds {
		if n := c.events.counts[k].Load(); n > 0 {
			s.Events[k] = n
		}
	}
	c.stats.mu.Lock()
	for e, m := range c.stats.methods {
		s.Methods[e.known()] = MethodStats{m.calls.Load(), m.notifications.Load(), m.errors.Load()}
	}
	c.stats.mu.Unlock()
	s.SentMessages, s.SentBytes = c.out.sent()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.InFlight = c.served.inFlight
	s.Notifications = c.served.notes
	return s
}

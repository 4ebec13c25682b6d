package pending

import (
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// MaxID is the largest id a table gives out, 2^53-1: the largest integer that
// every JSON implementation reads exactly (RFC 8259 section 6).
const MaxID = 1<<53 - 1

var (
	// ErrFull is returned by Add when as many calls wait as the table may hold.
	ErrFull = errors.New("pending: too many calls wait for their answers")

	// ErrExhausted is returned by Add when the ids of the table are used up.
	ErrExhausted = errors.New("pending: ids are used up")
)

// Table holds the calls that wait for their answers. Make one with [New].
// All methods may be used concurrently; none of them blocks or calls user code.
type Table[R any] struct {
	limit    int
	remember int
	made     time.Time
	pool     sync.Pool // of slots

	mu     sync.Mutex
	last   int64                        // the newest id; ids are never reused
	slots  Ring[Slot[R]]                // by id
	gone   *lru.Cache[int64, Abandoned] // nil until the first abandoned call
	cause  error                        // set once the table has failed
	failed bool
}

// Abandoned is what is remembered of a call whose caller gave up.
type Abandoned struct {
	Method string
	Note   string    // as given to Add
	Began  time.Time // when the call was added
	Ended  time.Time // when its caller gave up
}

// New returns an empty table for at most limit calls at once, which remembers
// the newest remember abandoned calls. Zero or less means no limit, and no
// memory.
func New[R any](limit, remember int) *Table[R] {
	return &Table[R]{limit: limit, remember: remember, made: time.Now()}
}

// Add makes a slot under a new id. It returns ErrFull or ErrExhausted, or the
// cause given to Fail.
func (t *Table[R]) Add(method, note string) (*Slot[R], error) {
	s, ok := t.pool.Get().(*Slot[R])
	if !ok {
		s = &Slot[R]{done: make(chan struct{}, 1)}
	}
	s.Method, s.Note, s.table = method, note, t
	s.began = time.Since(t.made) // half of what time.Now takes
	s.holders.Store(1)
	if err := t.add(s); err != nil {
		s.over = true
		s.Release()
		return nil, err
	}
	return s, nil
}

func (t *Table[R]) add(s *Slot[R]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failed:
		return t.cause
	case t.limit > 0 && t.slots.Len() >= t.limit:
		return ErrFull
	case t.last >= MaxID:
		return ErrExhausted
	}
	t.last++
	s.ID = t.last
	t.slots.Put(s.ID, s)
	return nil
}

// Settle hands value to the waiter of id and reports whether there was one.
func (t *Table[R]) Settle(id int64, value R) bool {
	t.mu.Lock()
	s := t.slots.Take(id)
	t.mu.Unlock()
	if s == nil {
		return false
	}
	// Whoever took the slot, and nobody else, settles it: that is what makes
	// settling happen once.
	s.value = value
	s.done <- struct{}{}
	return true
}

// Has reports whether a caller waits for id.
func (t *Table[R]) Has(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots.Find(id) != nil
}

// Len is the number of calls that wait.
func (t *Table[R]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots.Len()
}

// Late tells what is remembered of an abandoned call and forgets it: its answer
// is late once, and unknown if it comes again.
func (t *Table[R]) Late(id int64) (Abandoned, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone == nil {
		return Abandoned{}, false
	}
	a, ok := t.gone.Peek(id)
	if ok {
		t.gone.Remove(id)
	}
	return a, ok
}

// Fail ends every waiting call with cause and every later Add too. The first
// cause stays. What has not left by then never will, so that NotSent holds and the
// call may be made again elsewhere.
func (t *Table[R]) Fail(cause error) {
	t.mu.Lock()
	slots := t.slots
	t.slots = Ring[Slot[R]]{}
	if !t.failed {
		t.failed, t.cause = true, cause
	}
	cause = t.cause
	t.mu.Unlock()
	slots.each(func(_ int64, s *Slot[R]) {
		s.withdraw()
		s.err = cause
		s.done <- struct{}{}
	})
}

// drop removes s because its caller gave up, and remembers it if its bytes may
// have left. It reports false when s was settled first.
func (t *Table[R]) drop(s *Slot[R]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots.Find(s.ID) != s {
		return false
	}
	t.slots.Take(s.ID)
	if s.withdraw() || t.remember <= 0 {
		return true
	}
	if t.gone == nil {
		// The only error of lru.New is a size below one.
		t.gone, _ = lru.New[int64, Abandoned](t.remember)
	}
	t.gone.Add(s.ID, Abandoned{Method: s.Method, Note: s.Note, Began: t.made.Add(s.began), Ended: time.Now()})
	return true
}

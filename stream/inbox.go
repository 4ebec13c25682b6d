package stream

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// Where nobody chose a window, it is as many items as are used within stretch, never
// fewer than in the beginning and at most mostItems: who is quick is not held up by a
// small one, and who is slow is not flooded. The bytes stay.
const (
	stretch   = 10 * time.Millisecond
	mostItems = 1024
)

// idle is how long a receiver that waits keeps credit back which is less than half the
// window: long enough that one item at a time does not cost a message each.
const idle = 50 * time.Millisecond

// inbox is the end of a stream that items arrive at. The reader puts them in, one
// goroutine takes them out.
type inbox struct {
	window, bound amount
	opens         bool          // nobody chose the window
	least         int64         // items of it, in the beginning
	overflow      func()        // called once, when the bound is passed
	wake          chan struct{} // something came; has room for one

	reserved atomic.Int64 // bytes of Limits.StreamBytes; 0 where none are needed

	mu   sync.Mutex
	text []byte // of items, one after the other
	ends []int  // where each ends in text
	held amount // that were not used, as far as who takes them out has told
	full bool   // the bound was passed, and so no more will come
	last bool   // no more will come

	// Of the attempt at the call, guarded by mu. They stay once an item has arrived.
	conn    *peer.Conn
	token   []byte
	attempt int  // which one it is
	asks    bool // it is not over
	got     bool // an item has arrived

	// Of who takes them out.
	method  string // of the credit
	at      []byte // items that were taken out
	atEnds  []int
	next    int
	taken   amount // in all
	told    amount // of that, what held has lost
	granted amount
	timer   *time.Timer // for credit that is kept back; nil until needed
	since   time.Time   // when credit was given last, and
	then    int64       // how many items had been taken
}

func newInbox(o *options, bound amount, overflow func()) *inbox {
	return &inbox{
		window: o.window, bound: bound, opens: !o.chosen, least: o.window.items, granted: o.window,
		overflow: overflow, wake: make(chan struct{}, 1),
	}
}

// bind says where items come from, and credit goes. It returns a number for add and
// unbind, or 0 where another attempt at the call is not over, or has brought items.
func (b *inbox) bind(c *peer.Conn, token []byte) (attempt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asks || b.got {
		return 0
	}
	b.conn, b.token, b.asks = c, token, true
	b.attempt++
	return b.attempt
}

// unbind says that the attempt is over, and reports whether there may be another.
func (b *inbox) unbind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks = false
	return !b.got
}

// add puts one item of an attempt in, which is 0 where nothing was bound. The reader calls it.
func (b *inbox) add(attempt int, item []byte) {
	b.mu.Lock()
	over := b.held.plus(amount{1, int64(len(item))})
	switch {
	case b.last, attempt != b.attempt: // the reader of an earlier attempt may be late
		b.mu.Unlock()
		return
	case b.held.items > 0 && !b.bound.atLeast(over), !b.reserve(int64(len(item))):
		b.full, b.last = true, true
		b.mu.Unlock()
		b.overflow()
	default:
		b.got = true
		b.text = append(b.text, item...)
		b.ends = append(b.ends, len(b.text))
		b.held = over
		b.mu.Unlock()
	}
	b.signal()
}

// reserve takes what an item that passes alone needs beyond what is reserved, of those
// that have to. It stays taken until the end.
func (b *inbox) reserve(size int64) bool {
	reserved := b.reserved.Load()
	if reserved == 0 || size <= reserved {
		return true
	}
	n := b.conn.Reserve(size-reserved, size-reserved)
	b.reserved.Add(n)
	return n > 0
}

// finish notes that no more will come.
func (b *inbox) finish() {
	b.mu.Lock()
	b.last = true
	b.mu.Unlock()
	b.signal()
}

// overflowed reports whether the bound was passed.
func (b *inbox) overflowed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.full
}

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns the next item, valid until the next call of take, or nil where there is
// none at the moment; then last tells that there never will be.
func (b *inbox) take() (item []byte, last bool) {
	if b.next == len(b.atEnds) {
		b.swap()
		if len(b.atEnds) == 0 {
			b.mu.Lock()
			defer b.mu.Unlock()
			return nil, b.last && len(b.ends) == 0
		}
	}
	from := 0
	if b.next > 0 {
		from = b.atEnds[b.next-1]
	}
	item = b.at[from:b.atEnds[b.next]:b.atEnds[b.next]]
	b.next++
	return item, false
}

// swap takes out all there is.
func (b *inbox) swap() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell()
	at, ends := b.at[:0], b.atEnds[:0]
	if cap(at) > maxKept {
		at = nil
	}
	b.at, b.atEnds, b.next = b.text, b.ends, 0
	b.text, b.ends = at, ends
}

// tell counts out what was used. b.mu is held.
func (b *inbox) tell() {
	b.held = b.held.minus(b.taken.minus(b.told))
	b.told = b.taken
}

// used notes that who takes items out is done with one, and gives credit for it: at
// once where that is half the window.
func (b *inbox) used(ctx context.Context, item []byte) {
	b.taken = b.taken.plus(amount{1, int64(len(item))})
	back := b.taken.plus(b.window).minus(b.granted)
	if 2*back.items >= b.window.items || 2*back.bytes >= b.window.bytes {
		b.adapt()
		b.grant(ctx)
	}
}

// adapt makes the window as large as what is used within stretch.
func (b *inbox) adapt() {
	if !b.opens {
		return
	}
	now := time.Now()
	if !b.since.IsZero() {
		used, took := b.taken.items-b.then, max(now.Sub(b.since), time.Microsecond)
		rate := used * int64(stretch/time.Microsecond) / int64(took/time.Microsecond)
		b.window.items = max(b.least, min(rate, 2*b.window.items, mostItems, b.bound.items))
	}
	b.since, b.then = now, b.taken.items
}

// grant gives all the credit there is.
func (b *inbox) grant(ctx context.Context) {
	all := b.taken.plus(b.window)
	all = amount{max(all.items, b.granted.items), max(all.bytes, b.granted.bytes)} // given is given
	b.mu.Lock()
	b.tell()
	conn, token := b.conn, b.token
	b.mu.Unlock()
	if conn == nil || all == b.granted {
		return
	}
	b.granted = all
	params := json.RawMessage(object("token", token, all.members()...))
	e, err := conn.Encode(b.method, nil, params, nil)
	if err == nil {
		_ = e.Now(ctx) // where the connection, or the call, has ended the wait sees that
	}
}

// wait waits until something came, and for credit that is kept back. It reports false
// where done is closed, or ctx ended, first.
func (b *inbox) wait(ctx context.Context, done <-chan struct{}) bool {
	for {
		var due <-chan time.Time
		if !b.granted.atLeast(b.taken.plus(b.window)) {
			if b.timer == nil {
				b.timer = time.NewTimer(idle)
			} else {
				b.timer.Reset(idle)
			}
			due = b.timer.C
		}
		select {
		case <-b.wake:
			return true
		case <-done:
			return false
		case <-ctx.Done():
			return false
		case <-due:
			b.grant(ctx)
		}
	}
}

// maxKept is the largest memory for items, in bytes, that is used again.
const maxKept = 64 << 10

// itemOf finds the item in the params of a notification.
func itemOf(params *codec.Object, flat bool) []byte {
	if flat {
		return codec.Find(params.Find("_meta"), offerName)
	}
	return params.Find("value")
}

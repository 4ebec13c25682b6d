package stream

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// idle is how long a receiver that waits keeps credit back which is less than half the
// window: long enough that one item at a time does not cost a message each.
const idle = 50 * time.Millisecond

// inbox is the end of a stream that items arrive at. The reader puts them in, one
// goroutine takes them out.
type inbox struct {
	window, bound amount
	overflow      func()        // called once, when the bound is passed
	wake          chan struct{} // something came; has room for one

	mu   sync.Mutex
	text []byte // of items, one after the other
	ends []int  // where each ends in text
	held amount // that were not taken out, those at hand included
	full bool   // the bound was passed, and so no more will come
	last bool   // no more will come

	// Of who takes them out.
	conn    *peer.Conn // set before the first item arrives, guarded by mu
	method  string     // of the credit
	token   []byte
	at      []byte // items that were taken out
	atEnds  []int
	next    int
	taken   amount // in all
	granted amount
	timer   *time.Timer // for credit that is kept back; nil until needed
}

func newInbox(window, bound amount, overflow func()) *inbox {
	return &inbox{window: window, bound: bound, overflow: overflow, granted: window, wake: make(chan struct{}, 1)}
}

// bind says where items come from, and credit goes. It reports false the second time.
func (b *inbox) bind(c *peer.Conn, token []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		return false
	}
	b.conn, b.token = c, token
	return true
}

// add puts one item in. The reader calls it.
func (b *inbox) add(item []byte) {
	b.mu.Lock()
	over := b.held.plus(amount{1, int64(len(item))})
	switch {
	case b.last:
		b.mu.Unlock()
		return
	case b.held.items > 0 && !b.bound.atLeast(over):
		b.full, b.last = true, true
		b.mu.Unlock()
		b.overflow()
	default:
		b.text = append(b.text, item...)
		b.ends = append(b.ends, len(b.text))
		b.held = over
		b.mu.Unlock()
	}
	b.signal()
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
	at, ends := b.at[:0], b.atEnds[:0]
	if cap(at) > maxKept {
		at = nil
	}
	b.at, b.atEnds, b.next = b.text, b.ends, 0
	b.text, b.ends = at, ends
}

// used notes that who takes items out is done with one, and gives credit for it: at
// once where that is half the window.
func (b *inbox) used(ctx context.Context, item []byte) {
	size := amount{1, int64(len(item))}
	b.mu.Lock()
	b.held = b.held.minus(size)
	b.mu.Unlock()
	b.taken = b.taken.plus(size)
	back := b.taken.plus(b.window).minus(b.granted)
	if 2*back.items >= b.window.items || 2*back.bytes >= b.window.bytes {
		b.grant(ctx)
	}
}

// grant gives all the credit there is.
func (b *inbox) grant(ctx context.Context) {
	all := b.taken.plus(b.window)
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn == nil || all == b.granted {
		return
	}
	b.granted = all
	params := json.RawMessage(object("token", b.token, all.members()...))
	_ = conn.Notify(ctx, b.method, params) // the connection, or the call, has ended: the wait sees that
}

// wait waits until something came, and for credit that is kept back. It reports false
// where done is closed, or ctx ended, first.
func (b *inbox) wait(ctx context.Context, done <-chan struct{}) bool {
	for {
		var due <-chan time.Time
		if b.taken.plus(b.window) != b.granted {
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

// itemOf finds the item in the params of a notification.
func itemOf(params []byte, flat bool) []byte {
	if flat {
		return codec.Find(codec.Find(params, "_meta"), offerName)
	}
	return codec.Find(params, "value")
}

package peer

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
)

// room is a number of bytes that many share, first come, first served. While nobody
// waits, taking and giving is one atomic step each, for every message does both.
type room struct {
	most    int64
	used    atomic.Int64
	waiting atomic.Int64 // how many are in line, for who need not wait for mu to see that

	mu   sync.Mutex
	line list.List // of *place
}

// place is one in the line.
type place struct {
	bytes int64
	given chan struct{} // closed when it has them
}

// weight is the room that n bytes take: what is larger than all of it passes alone.
func (r *room) weight(n int) int64 { return min(int64(n), r.most) }

// try takes n if nobody waits and there is so much.
func (r *room) try(n int64) bool { return r.waiting.Load() == 0 && r.take(n) }

func (r *room) take(n int64) bool {
	for {
		used := r.used.Load()
		if used+n > r.most {
			return false
		}
		if r.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// wait takes n once it is its turn. It reports false, and takes nothing, when ctx or
// over ends first.
func (r *room) wait(ctx context.Context, over <-chan struct{}, n int64) bool {
	p := &place{n, make(chan struct{})}
	r.mu.Lock()
	at := r.line.PushBack(p)
	r.serve()
	r.mu.Unlock()
	select {
	case <-p.given:
		return true
	case <-ctx.Done():
	case <-over:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-p.given: // at the same time
		r.used.Add(-n)
	default:
		r.line.Remove(at)
	}
	r.serve()
	return false
}

// give gives n back.
func (r *room) give(n int64) {
	r.used.Add(-n)
	// Whoever gets in line counts as waiting before it looks at used for the last
	// time, so one of the two sees the other.
	if r.waiting.Load() > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.serve()
	}
}

// serve gives to the line from its front as long as there is enough. r.mu is held.
func (r *room) serve() {
	r.waiting.Store(int64(r.line.Len()))
	for first := r.line.Front(); first != nil && r.take(first.Value.(*place).bytes); first = r.line.Front() {
		close(r.line.Remove(first).(*place).given)
		r.waiting.Store(int64(r.line.Len()))
	}
}

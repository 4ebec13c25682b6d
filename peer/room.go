package peer

import (
	"context"
	"slices"
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
	line []*place
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
	r.line = append(r.line, p)
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
	if i := slices.Index(r.line, p); i >= 0 {
		r.line = slices.Delete(r.line, i, i+1)
	} else { // it came at the same time
		r.used.Add(-n)
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
	r.waiting.Store(int64(len(r.line)))
	for len(r.line) > 0 && r.take(r.line[0].bytes) {
		close(r.line[0].given)
		r.line = slices.Delete(r.line, 0, 1)
		r.waiting.Store(int64(len(r.line)))
	}
}

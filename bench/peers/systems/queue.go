package systems

import (
	"encoding/binary"
	"runtime"
	"sync"
)

// queueBytes bounds a queue; who puts more waits.
const queueBytes = 4 << 20

// queue holds frames for one writer, which takes all there are at once. A frame is
// preceded by its length in four bytes.
type queue struct {
	mu     sync.Mutex
	room   sync.Cond // on mu
	buf    []byte
	frames int
	idle   bool // the writer waits for wake
	wake   chan struct{}
	closed bool
}

func newQueue() *queue {
	q := &queue{wake: make(chan struct{}, 1)}
	q.room.L = &q.mu
	return q
}

// put queues a frame. It fails where there is no writer any more.
func (q *queue) put(id uint64, raw []byte, text string) error {
	q.mu.Lock()
	for len(q.buf) > queueBytes && !q.closed {
		q.room.Wait()
	}
	if q.closed {
		q.mu.Unlock()
		return errRawClosed
	}
	q.buf = binary.BigEndian.AppendUint32(q.buf, uint32(idBytes+len(raw)+len(text)))
	q.buf = appendFrame(q.buf, id, raw, text)
	q.frames++
	idle := q.idle
	q.idle = false
	q.mu.Unlock()
	if idle {
		q.wake <- struct{}{}
	}
	return nil
}

// take swaps all queued frames for the memory of old. Where more may follow
// shortly, the processor is yielded once, so that they leave together.
func (q *queue) take(old []byte, more func(frames int) bool) (frames []byte, ok bool) {
	q.mu.Lock()
	for len(q.buf) == 0 && !q.closed {
		q.idle = true
		q.mu.Unlock()
		<-q.wake
		q.mu.Lock()
	}
	if more(q.frames) {
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
	frames, q.buf, q.frames = q.buf, old[:0], 0
	ok = !q.closed
	q.mu.Unlock()
	q.room.Broadcast()
	return frames, ok
}

// close ends the writer and those who put.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	idle := q.idle
	q.idle = false
	q.mu.Unlock()
	q.room.Broadcast()
	if idle {
		q.wake <- struct{}{}
	}
}

package peer

import (
	"bytes"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Buffers are kept for reuse by sizes that are powers of two.
const (
	minBuffer = 512
	maxBuffer = 4 << 20 // larger ones are not kept
	sizes     = 14      // from minBuffer to maxBuffer
)

// buffer holds the bytes of one envelope, in or out. A received batch is shared
// by its requests: the last release gives it back.
type buffer struct {
	b    []byte
	json bytes.Buffer // where a marshaller writes to while it appends to b
	refs atomic.Int32 // 1 while it is kept for reuse, with the build tag duetpoison 0
	from *buffers
}

// buffers are the pools of one connection, or of all connections of a Server.
type buffers struct {
	pools    [sizes]sync.Pool
	requests sync.Pool // of *incoming
}

func (p *buffers) getRequest() *incoming {
	if r, ok := p.requests.Get().(*incoming); ok {
		return r
	}
	return new(incoming)
}

// putRequest keeps r, which nobody knows any more, for another time.
func (p *buffers) putRequest(r *incoming) {
	*r = incoming{}
	p.requests.Put(r)
}

// sizeOf is the index of the least size that holds n bytes.
func sizeOf(n int) int { return max(0, bits.Len(uint(max(n, minBuffer)-1))-bits.Len(minBuffer-1)) }

// get returns an empty buffer with room for n bytes and one reference.
func (p *buffers) get(n int) *buffer {
	at := sizeOf(n)
	if at < sizes {
		if b, ok := p.pools[at].Get().(*buffer); ok {
			b.isFree(false)
			return b
		}
		n = minBuffer << at
	}
	b := &buffer{from: p, b: make([]byte, 0, n)}
	b.refs.Store(1)
	return b
}

// put keeps b for another time, under the size it fills.
func (p *buffers) put(b *buffer) {
	poisonBytes(b.b[:cap(b.b)])
	b.isFree(true)
	b.b = b.b[:0]
	at := sizeOf(cap(b.b))
	if at < sizes && minBuffer<<at > cap(b.b) {
		at-- // it grew by append, to something between two sizes
	}
	if 0 <= at && at < sizes {
		p.pools[at].Put(b)
	}
}

// move puts what b holds into a buffer with room for n more bytes.
func (b *buffer) move(n int) {
	other := b.from.get(len(b.b) + n)
	other.b, b.b = b.b, append(other.b, b.b...)
	b.from.put(other)
}

// trim moves what b holds to a smaller buffer where it holds much less than it
// could: what is queued must not be more than is counted.
func (b *buffer) trim() {
	if cap(b.b) > minBuffer && len(b.b) <= cap(b.b)/2 {
		b.move(0)
	}
}

func (b *buffer) retain() { b.refs.Add(1) }

// release gives up one reference. Nothing that aliases the bytes may be used
// after it.
func (b *buffer) release() {
	// Who holds the only reference needs no atomic step to know it.
	if b.refs.Load() > 1 {
		if b.refs.Add(-1) > 0 {
			return
		}
		b.refs.Store(1)
	}
	b.from.put(b)
}

package peer

import (
	"sync"
	"sync/atomic"
)

// maxPooled bounds the buffers that are kept for reuse, so that an idle reader
// never sits on a large one.
const maxPooled = 4 << 10

// buffer holds the bytes of one envelope, in or out. A received batch is shared
// by its requests: the last release gives it back.
type buffer struct {
	b    []byte
	refs atomic.Int32
	from *buffers
}

// buffers is the pool of one connection, or of all connections of a Server.
type buffers struct {
	pool sync.Pool
}

// get returns an empty buffer with one reference.
func (p *buffers) get() *buffer {
	b, ok := p.pool.Get().(*buffer)
	if !ok {
		b = &buffer{from: p, b: make([]byte, 0, 512)}
	}
	b.refs.Store(1)
	return b
}

func (b *buffer) retain() { b.refs.Add(1) }

// release gives up one reference. Nothing that aliases the bytes may be used
// after it.
func (b *buffer) release() {
	if b.refs.Add(-1) != 0 {
		return
	}
	if cap(b.b) > maxPooled {
		b.b = nil // whoever still has b does not keep the bytes
		return
	}
	b.b = b.b[:0]
	b.from.pool.Put(b)
}

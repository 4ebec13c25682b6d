package wsconn

import "sync"

// chunk is the size of the buffers between a connection and the system: what one call to it moves at most. A
// message that is larger passes in pieces.
const chunk = 128 << 10

// Buffers lends the buffers that a connection needs while bytes move through it; an idle one over TCP needs none.
// The zero value is ready. It may be shared by any number of connections and must not be copied.
type Buffers struct{ pool sync.Pool }

func (p *Buffers) take() *[chunk]byte {
	if b, ok := p.pool.Get().(*[chunk]byte); ok {
		return b
	}
	return new([chunk]byte)
}

func (p *Buffers) give(b *[chunk]byte) {
	poisonBytes(b[:])
	p.pool.Put(b)
}

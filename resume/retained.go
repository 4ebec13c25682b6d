package resume

import "sync"

// chunkSize is how much memory for messages is taken at once, and used again. A larger
// message has its own.
const chunkSize = 16 << 10

// retained holds the messages that the other end has not acknowledged, as copies, in order.
type retained struct {
	pool  *sync.Pool // of *chunk
	acked uint64     // messages that are not needed any more, from the first
	last  uint64     // messages that were added, from the first
	bytes int64      // of those that are held

	head, tail *chunk
	dropped    uint64 // messages that are not held any more; less than acked while pinned
	pinned     bool   // the memory is being read
}

// chunk holds messages that follow each other.
type chunk struct {
	next *chunk
	text []byte
	ends []int // where each ends in text
	from int   // how many of them were dropped
}

// fits reports whether n more bytes are within most. One message fits in any case where
// there is no other.
func (r *retained) fits(n int, most int64) bool { return r.last == r.acked || r.bytes+int64(n) <= most }

// add holds one more message.
func (r *retained) add(msg []byte) {
	if r.tail == nil || cap(r.tail.text)-len(r.tail.text) < len(msg) {
		r.grow(len(msg))
	}
	c := r.tail
	c.text = append(c.text, msg...)
	c.ends = append(c.ends, len(c.text))
	r.last++
	r.bytes += int64(len(msg))
}

// grow adds a chunk with room for n bytes.
func (r *retained) grow(n int) {
	var c *chunk
	if n <= chunkSize {
		if c, _ = r.pool.Get().(*chunk); c == nil {
			c = &chunk{text: make([]byte, 0, chunkSize)}
		}
	} else {
		c = &chunk{text: make([]byte, 0, n)}
	}
	if r.tail == nil {
		r.head = c
	} else {
		r.tail.next = c
	}
	r.tail = c
}

// undo takes back the message that was added last.
func (r *retained) undo() {
	r.last--
	c := r.tail
	if c == nil { // it was freed
		return
	}
	n := len(c.ends) - 1
	start := c.start(n)
	r.bytes -= int64(len(c.text) - start)
	c.text, c.ends = c.text[:start], c.ends[:n]
	r.trim()
}

// acknowledge notes that the first n messages have arrived.
func (r *retained) acknowledge(n uint64) {
	r.acked = n
	r.trim()
}

// trim drops what is not needed.
func (r *retained) trim() {
	if r.pinned {
		return
	}
	for c := r.head; c != nil; c = r.head {
		left := len(c.ends) - c.from
		if need := r.acked - r.dropped; need < uint64(left) {
			r.bytes -= int64(c.start(c.from+int(need)) - c.start(c.from))
			c.from += int(need)
			r.dropped = r.acked
			return
		}
		r.bytes -= int64(len(c.text) - c.start(c.from))
		r.dropped += uint64(left)
		if r.head = c.next; r.head == nil {
			r.tail = nil
		}
		if cap(c.text) == chunkSize {
			*c = chunk{text: c.text[:0], ends: c.ends[:0]}
			r.pool.Put(c)
		}
	}
}

// start is where message i of the chunk begins.
func (c *chunk) start(i int) int {
	if i == 0 {
		return 0
	}
	return c.ends[i-1]
}

// pin returns the chunks, which do not change until unpin.
func (r *retained) pin() *chunk {
	r.pinned = true
	return r.head
}

func (r *retained) unpin() {
	r.pinned = false
	r.trim()
}

// messages returns those of the chunk that are held. They lie in its memory.
func (c *chunk) messages() [][]byte {
	msgs := make([][]byte, 0, len(c.ends)-c.from)
	for i := c.from; i < len(c.ends); i++ {
		msgs = append(msgs, c.text[c.start(i):c.ends[i]])
	}
	return msgs
}

// free gives up what is held, though it was not acknowledged. Nothing may be added after it.
func (r *retained) free() { r.head, r.tail, r.bytes = nil, nil, 0 }

//go:build duetpoison

package peer

// poisonBytes overwrites the bytes of a buffer that is given back, so that tests
// notice who still reads them.
func poisonBytes(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}

// isFree notes whether b is kept for reuse. Whoever gives it back twice, or takes
// what nobody gave back, is noticed.
func (b *buffer) isFree(free bool) {
	was, is := int32(0), int32(1)
	if free {
		was, is = is, was
	}
	if !b.refs.CompareAndSwap(was, is) {
		panic("peer: a buffer was released twice")
	}
}

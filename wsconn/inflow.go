package wsconn

import (
	"math"
	"runtime"
	"slices"
)

// idleBuffer is what a connection waits and reads with, in bytes, where it cannot wait without a buffer.
const idleBuffer = 4 << 10

// directRead is the least that is read past the buffer, right to where it belongs.
const directRead = 16 << 10

// A read takes about burst messages, or leastRead bytes. Where that is done with Yield, whoever reads lets the others
// run between two such reads: so the work is done in the order it comes, and what one read brought is on its way back
// while the next one's is looked at. Larger reads, or none of that, leave a processor idle and make the slowest calls
// twice as slow. Where nothing is on its way back it is the other way round: the next read is to be ready in time.
const (
	burst     = 32
	leastRead = 2 << 10
)

// firstGrow is the most room that is made for a message of which nothing is there: a header may promise anything.
const firstGrow = 16 << 10

// An inflow cuts the stream into frames. Conn takes unfragmented data frames out of it; every other frame, and what
// belongs to one, goes to the library. One of them reads at a time, and the other end's next frame is whose it is.
type inflow struct {
	sock    *socket
	buffers *Buffers
	client  bool

	gate   gate         // shut while somebody reads; guards all below
	lent   *[chunk]byte // of buffers, nil for none
	idle   []byte       // nil until needed
	unread []byte       // what was read and nobody has taken, a part of one of these two, or of part
	part   [maxHeader]byte
	asked  int   // bytes that the last read was for at most
	full   bool  // it got so many
	yield  bool  // and then, others are to run before the next
	frame  int   // bytes of the last data frame
	left   int64 // bytes that the library may still take of the frame it reads
	ahead  int   // the most bytes that the stream may hold above its descriptor
}

func (f *inflow) init(s *socket, early []byte, ahead int) {
	f.sock, f.gate, f.ahead = s, newGate(), ahead
	f.unread = slices.Clone(early)
}

// feed gives the library the bytes of one frame.
func (f *inflow) feed(p []byte) (int, error) {
	f.gate.lock()
	defer f.gate.unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if f.left == 0 {
		h, err := f.next()
		if err != nil {
			return 0, err
		}
		if f.client && h.masked {
			return 0, errMasked
		}
		f.left = max(h.length, 0)
		f.left += min(int64(h.size), math.MaxInt64-f.left) // the library refuses so much
	}
	if len(f.unread) == 0 {
		if err := f.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p[:min(int64(len(p)), f.left)], f.unread)
	f.took(n)
	f.left -= int64(n)
	return n, nil
}

// next waits for the header of the next frame, and leaves it where it is.
func (f *inflow) next() (header, error) {
	for {
		if h, ok := parseHeader(f.unread); ok {
			return h, nil
		}
		if err := f.fill(); err != nil {
			return header{}, err
		}
	}
}

// message appends the payload of the frame that h begins to buf, whose room grow makes.
func (f *inflow) message(h *header, buf []byte, grow func(buf []byte, n int) []byte) ([]byte, error) {
	f.took(h.size)
	f.frame = h.size + int(h.length)
	start, end := len(buf), len(buf)+int(h.length)
	for len(buf) < end {
		at := len(buf)
		if cap(buf) == at {
			// What has come already is the measure of what may be believed to come.
			n, came := end-at, at-start+len(f.unread)
			if n > firstGrow && n/16 > came {
				n = max(firstGrow, 16*came)
			}
			buf = grow(buf, n)
		}
		into := buf[at:min(end, cap(buf))]
		switch {
		case len(f.unread) > 0:
			n := copy(into, f.unread)
			f.took(n)
			buf = buf[:at+n]
		case len(into) >= directRead:
			n, err := f.sock.read(into)
			buf = buf[:at+n]
			if err != nil {
				return nil, err
			}
		default:
			if err := f.fill(); err != nil {
				return nil, err
			}
		}
		if h.masked {
			mask(buf[at:], buf[at:], h.key, at-start)
		}
	}
	return buf, nil
}

// took drops n bytes that were taken.
func (f *inflow) took(n int) { f.unread = f.unread[n:] }

// fill reads more behind what is unread.
func (f *inflow) fill() error {
	if f.full && f.yield {
		f.yield = false
		runtime.Gosched()
	}
	if low := f.sock.low; low != nil && f.ahead == 0 {
		n, err := low.read()
		f.extend(n)
		return f.sock.count(n, err)
	}
	n, err := f.sock.read(f.waiting())
	f.extend(n)
	f.ahead = 0 // it came in one piece
	return err
}

// room returns where to read to, now that there is something to read.
func (f *inflow) room() []byte {
	if f.lent == nil {
		f.lent = f.buffers.take()
	}
	f.unread = f.lent[:copy(f.lent[:], f.unread)] // to the front: a header is the most that is kept
	free := f.lent[len(f.unread):]
	return f.ask(free[:min(len(free), max(leastRead, burst*min(f.frame, chunk)))])
}

// giveBack drops the buffer that room took: all that can be in it is a part of a header.
func (f *inflow) giveBack() {
	if f.lent != nil {
		f.unread = f.part[:copy(f.part[:], f.unread)]
		f.buffers.give(f.lent)
		f.lent = nil
	}
}

// waiting returns where to read to while nobody knows when that will be, and cannot: a small buffer of the
// connection's own. What is large is read past it.
func (f *inflow) waiting() []byte {
	if f.idle == nil {
		f.idle = make([]byte, max(idleBuffer, f.ahead))
	}
	f.unread = f.idle[:copy(f.idle, f.unread)]
	return f.ask(f.idle[len(f.unread):])
}

func (f *inflow) ask(space []byte) []byte {
	f.asked = len(space)
	return space
}

// extend adds the n bytes that were read.
func (f *inflow) extend(n int) {
	f.full = n > 0 && n == f.asked
	f.unread = f.unread[:len(f.unread)+n]
}

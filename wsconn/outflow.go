package wsconn

import (
	"crypto/rand"
	"net"
)

// An outflow makes frames of messages and gathers them, so that many leave by one call to the system.
type outflow struct {
	buf  *[chunk]byte // nil while nothing is in it
	n    int          // bytes in it
	keys []byte       // random, to be used once; nil until needed
	used int          // of keys
}

// randomBytes is how much randomness is taken at once.
const randomBytes = 512

// key returns a masking key no one can foretell (RFC 6455 section 5.3), nil at the accepting end.
func (c *Conn) key() []byte {
	if !c.client {
		return nil
	}
	o := &c.out
	if o.used == len(o.keys) {
		if o.keys == nil {
			o.keys = make([]byte, randomBytes)
		}
		rand.Read(o.keys) // never fails
		o.used = 0
	}
	o.used += 4
	return o.keys[o.used-4 : o.used]
}

// writeFrames sends each message as a frame. The turn is the caller's.
func (c *Conn) writeFrames(msgs [][]byte) error {
	if err := c.beginFrames(); err != nil {
		return err
	}
	for _, msg := range msgs {
		if err := c.putFrame(msg); err != nil {
			c.endFrames()
			return err
		}
	}
	err := c.flush()
	c.endFrames()
	return err
}

// beginFrames keeps the library's frames out until endFrames. Where TryWrite left something, they are out already.
func (c *Conn) beginFrames() error {
	if c.out.buf != nil {
		return nil
	}
	c.sock.frames.lock()
	if c.sock.said {
		c.sock.frames.unlock()
		return errSaid
	}
	c.out.buf = c.opts.Buffers.take()
	return nil
}

func (c *Conn) endFrames() {
	c.opts.Buffers.give(c.out.buf)
	c.out.buf, c.out.n = nil, 0
	c.sock.frames.unlock()
}

// putFrame puts a frame with msg into the buffer, and writes what it has no room for.
func (c *Conn) putFrame(msg []byte) error {
	o := &c.out
	if chunk-o.n < maxHeader {
		if err := c.flush(); err != nil {
			return err
		}
	}
	key := c.key()
	if key == nil && len(msg) >= uncopied {
		o.n = len(appendTextHeader(o.buf[:o.n], len(msg), nil))
		return c.flushWith(msg)
	}
	for rest := o.put(msg, key); len(rest) > 0; {
		if err := c.flush(); err != nil {
			return err
		}
		rest = o.add(rest, key, len(msg)-len(rest))
	}
	return nil
}

// put puts a header, for which there is room, and as much of msg as there is room for into the buffer, and returns
// the rest.
func (o *outflow) put(msg, key []byte) (rest []byte) {
	o.n = len(appendTextHeader(o.buf[:o.n], len(msg), key))
	return o.add(msg, key, 0)
}

// add puts as much of a payload, from offset on, as there is room for into the buffer, and returns the rest.
func (o *outflow) add(payload, key []byte, offset int) (rest []byte) {
	free := o.buf[o.n:]
	n := min(len(free), len(payload))
	if key == nil {
		copy(free, payload)
	} else {
		mask(free[:n], payload[:n], [4]byte(key), offset)
	}
	o.n += n
	return payload[n:]
}

// uncopied is the least message that leaves from where it is, in bytes. A client's never does, since it is masked.
const uncopied = 32 << 10

// flushWith hands what is in the buffer, and msg behind it, to the system, by one call where the stream is a TCP
// connection.
func (c *Conn) flushWith(msg []byte) error {
	o := &c.out
	both := net.Buffers{o.buf[:o.n], msg}
	o.n = 0
	return c.sock.writev(both)
}

// flush hands what is in the buffer to the system.
func (c *Conn) flush() error {
	o := &c.out
	if o.n == 0 {
		return nil
	}
	_, err := c.sock.write(o.buf[:o.n])
	o.n = 0
	return err
}

// finishFrame sends what TryWrite left, so that a close frame can follow. It waits for a Write that runs, as long
// as the socket lives.
func (c *Conn) finishFrame() {
	c.turn.lock()
	defer c.turn.unlock()
	c.finish()
}

// finish is finishFrame for who has the turn.
func (c *Conn) finish() error {
	if c.out.buf == nil {
		return nil
	}
	err := c.flush()
	c.endFrames()
	return err
}

package wsconn

import (
	"context"
	"crypto/rand"
	"sync"
)

// First bytes of unfragmented control frames (RFC 6455 section 5.2).
const (
	framePing = 0x80 | 0x9
	framePong = 0x80 | 0xA
)

// controls are the ping and the pong yet to be written, at most one of each: only the latest ping needs an answer
// (RFC 6455 section 5.5.3), and only one ping of ours is ever out.
//
// They are written by a goroutine that lives while there are any. The reader must not wait for its turn to write:
// when both ends' writers wait for the other's reader, and both readers for their own writer, nothing moves again.
type controls struct {
	mu      sync.Mutex
	ping    []byte
	pong    []byte
	running bool
	stopped bool
	wg      sync.WaitGroup
}

// sendControl has a control frame written soon. It never waits.
func (c *Conn) sendControl(first byte, payload []byte) {
	frame := controlFrame(first, payload, c.client)
	c.controls.mu.Lock()
	defer c.controls.mu.Unlock()
	if c.controls.stopped {
		return
	}
	if first == framePing {
		c.controls.ping = frame
	} else {
		c.controls.pong = frame
	}
	if !c.controls.running {
		c.controls.running = true
		c.controls.wg.Go(c.writeControls)
	}
}

// writeControls runs as the one goroutine that lives while a ping or pong waits to go out.
func (c *Conn) writeControls() {
	for {
		if c.takeTurn(context.Background()) != nil {
			return
		}
		frames := c.takeControls()
		if frames == nil {
			c.giveTurn()
			return
		}
		err := c.finish()
		if err == nil {
			_, err = c.sock.Write(frames)
		}
		c.giveTurn()
		if err != nil {
			return // Read meets the same broken socket and says so
		}
	}
}

// takeControls returns the waiting frames, or nil and says that the goroutine has ended.
func (c *Conn) takeControls() []byte {
	c.controls.mu.Lock()
	defer c.controls.mu.Unlock()
	frames := append(c.controls.ping, c.controls.pong...)
	c.controls.ping, c.controls.pong = nil, nil
	c.controls.running = len(frames) > 0
	return frames
}

// stopControls returns when no control frame is written any more. The connection has ended before it is called.
func (c *Conn) stopControls() {
	c.controls.mu.Lock()
	c.controls.stopped = true
	c.controls.mu.Unlock()
	c.controls.wg.Wait()
}

// controlFrame returns a whole frame. The payload has at most 125 bytes, so that its length is one byte.
func controlFrame(first byte, payload []byte, mask bool) []byte {
	if !mask {
		return append([]byte{first, byte(len(payload))}, payload...)
	}
	var key [4]byte
	rand.Read(key[:]) // never fails
	frame := append([]byte{first, 0x80 | byte(len(payload))}, key[:]...)
	for i, b := range payload {
		frame = append(frame, b^key[i%4])
	}
	return frame
}

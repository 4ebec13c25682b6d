package wsconn

import (
	"context"
	"encoding/binary"
	"sync"
	"time"
)

// A pinger tells a silent end from one that is gone. Its one timer runs to the next ping or, while a ping is out,
// to the deadline of its pong; nothing else lives between the two.
type pinger struct {
	mu      sync.Mutex
	timer   *time.Timer // nil without pings
	number  uint64      // of the last ping: its payload
	out     bool        // that ping has no pong yet
	stopped bool
}

// startPing arms the first ping, unless PingInterval turns pings off.
func (c *Conn) startPing() {
	if c.opts.PingInterval < 0 {
		return
	}
	c.ping.mu.Lock()
	defer c.ping.mu.Unlock()
	c.ping.timer = time.AfterFunc(c.opts.PingInterval, c.pingDue)
}

// pingDue runs when the timer does: a ping is due, or the pong of the last one is overdue.
func (c *Conn) pingDue() {
	payload, overdue := c.nextPing()
	switch {
	case overdue:
		c.end(&CloseError{Code: codeAbnormal, Local: true, Err: ErrPingTimeout}, byCut)
	case payload != nil:
		c.sendControl(framePing, payload)
	}
}

// nextPing advances the pinger by one step and says what, if anything, must happen now.
func (c *Conn) nextPing() (payload []byte, overdue bool) {
	c.ping.mu.Lock()
	defer c.ping.mu.Unlock()
	switch {
	case c.ping.stopped:
		return nil, false
	case c.ping.out:
		return nil, true
	}
	c.ping.number++
	c.ping.out = true
	// The deadline runs from here, not from when the frame left: an end that takes no bytes is gone too.
	c.ping.timer.Reset(c.opts.PongTimeout)
	return binary.BigEndian.AppendUint64(nil, c.ping.number), false
}

// pongReceived runs in Read. A pong that answers no ping, or an earlier one, is legal and means nothing
// (RFC 6455 section 5.5.3).
func (c *Conn) pongReceived(_ context.Context, payload []byte) {
	c.ping.mu.Lock()
	defer c.ping.mu.Unlock()
	if !c.ping.out || c.ping.stopped || len(payload) != 8 || binary.BigEndian.Uint64(payload) != c.ping.number {
		return
	}
	c.ping.out = false
	c.ping.timer.Reset(c.opts.PingInterval)
}

// pingReceived runs in Read. It returns false so that the library does not write the pong: see controls.
func (c *Conn) pingReceived(_ context.Context, payload []byte) bool {
	c.sendControl(framePong, payload)
	return false
}

func (c *Conn) stopPing() {
	c.ping.mu.Lock()
	defer c.ping.mu.Unlock()
	c.ping.stopped = true
	if c.ping.timer != nil {
		c.ping.timer.Stop()
	}
}

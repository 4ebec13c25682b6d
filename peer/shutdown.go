package peer

import "context"

// goingAway is the cause of a connection that its Server shut down.
type goingAway struct{}

func (goingAway) Error() string                 { return ErrShutdown.Error() }
func (goingAway) Unwrap() error                 { return ErrShutdown }
func (goingAway) WebSocketClose() (int, string) { return 1001, "going away" }

// Shutdown ends the connection in order: new requests are refused at both ends,
// requests that run and own calls that wait are finished, what is queued is
// written, then the connection is closed. Handlers that run may still call, and
// calls the other end makes while own calls wait are served.
//
// It returns nil when all of that is done, and Err when the connection broke
// meanwhile. When ctx ends before, the connection
// is closed at once and Shutdown returns the error of ctx. A handler must not
// wait for it, since it waits for the handler. On a connection that has ended
// it waits for Done.
func (c *Conn) Shutdown(ctx context.Context) error { return c.shutdown(ctx, ErrShutdown) }

func (c *Conn) shutdown(ctx context.Context, cause error) error {
	c.mu.Lock()
	was := c.ended
	if c.draining == nil {
		c.draining = make(chan struct{})
	}
	drained := c.draining
	c.mu.Unlock()
	c.isDraining.Store(true)
	c.checkDrained()
	if c.acks != nil && cause == error(goingAway{}) {
		c.guard("Transport.GoingAway", c.acks.GoingAway)
	}

	var lost error
	select {
	case <-drained:
		if c.acks != nil { // written is not arrived
			c.guard("Transport.Flush", func() { lost = c.acks.Flush(ctx) })
			if orderly(lost) { // the other end has ended it meanwhile
				lost = nil
			}
		}
		if ctx.Err() != nil {
			c.end(cause)
			return contextError(ctx)
		}
	case <-c.ctx.Done():
	case <-ctx.Done():
		c.end(cause)
		return contextError(ctx)
	}
	c.end(or(lost, cause))
	select {
	case <-c.done:
		if was {
			return nil
		}
		return or(c.Err(), lost) // it may have broken on the way
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// drains reports whether new requests are refused. Those that come while own
// calls wait may be part of answering them. c.mu is held.
func (c *Conn) drains() bool { return c.draining != nil && c.calls.Len() == 0 }

// checkDrained lets Shutdown go on when there is nothing left to wait for. It is
// called wherever something may have been the last.
func (c *Conn) checkDrained() {
	if !c.isDraining.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.drained && c.served.running.Load() == 0 && c.calls.Len() == 0 && c.out.idle() {
		c.drained = true
		close(c.draining)
	}
}

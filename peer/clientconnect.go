package peer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// connect makes one connection, and has it ready.
func (c *Client) connect() (*Conn, error) {
	var t Transport
	err := <-c.try("Session", func() (err error) {
		t, err = c.opts.Session(c.ctx, &c.redialer)
		return err
	})
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, errors.New("peer: Session returned no Transport")
	}
	conn, err := c.open(t)
	if err != nil {
		return nil, err
	}
	err = c.greet(conn)
	c.mu.Lock()
	c.greeting = false
	ready := err == nil && !c.draining && c.cause == nil
	if ready {
		c.ready = true
		close(c.changed)
	}
	c.mu.Unlock()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if ready {
		c.redialer.succeed()
		c.teller.state(ClientState{Phase: Connected})
	}
	return conn, nil
}

// open makes a connection over t.
func (c *Client) open(t Transport) (conn *Conn, err error) {
	c.goroutines.Add(1)
	err = <-c.try("Options.Outgoing", func() error { // what newConn runs of the user's
		conn = newConn(t, &c.opts.Options, c.opts.BaseContext, &c.buffers, func(*Conn) { c.goroutines.Done() })
		return nil
	})
	if err != nil {
		c.goroutines.Done()
		c.close(t)
		return nil, err
	}
	c.mu.Lock()
	c.conn, c.greeting = conn, true
	cause := c.cause
	c.mu.Unlock()
	if cause != nil { // it has not seen this connection
		conn.end(cause)
	}
	return conn, nil
}

// greet runs OnConnect. Whatever that has started with its context may live on as long as
// the connection, and so its time is bounded beside the context.
func (c *Client) greet(conn *Conn) error {
	f := c.opts.OnConnect
	if f == nil {
		return nil
	}
	ctx := context.WithValue(conn.Context(), connectingKey{}, conn)
	result := c.try("OnConnect", func() error { return f(ctx, conn) })
	timer := time.NewTimer(c.opts.DialTimeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-result:
	case <-timer.C:
		conn.end(fmt.Errorf("peer: OnConnect did not return within %v: %w", c.opts.DialTimeout, context.DeadlineExceeded))
		err = <-result
	}
	cause := conn.endCause()
	switch {
	case err == nil:
		return cause // nothing can go out any more
	case cause == nil || errors.Is(err, cause):
		return fmt.Errorf("peer: OnConnect: %w", err)
	default:
		return fmt.Errorf("peer: OnConnect: %w (%w)", err, cause)
	}
}

// belongs reports whether ctx is that of OnConnect, or of a handler, of a connection.
func belongs(ctx context.Context, conn *Conn) bool {
	of, _ := ConnFrom(ctx)
	return of == conn || ctx.Value(connectingKey{}) == conn
}

// connectingKey finds the connection whose OnConnect a context was made for.
type connectingKey struct{}

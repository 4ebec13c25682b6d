package peer

import (
	"context"
	"sync"
)

// Client is the end that dials, and that stays connected: when its connection ends, by
// whichever end, it dials again by itself, after a pause. Calls made meanwhile wait for
// the next connection. All methods may be used concurrently, also from handlers.
//
// A call whose connection ends is made again on the next one only where it was not sent;
// see Call. What the other end knew of the connection is gone: OnConnect is the place to
// tell it again.
type Client struct {
	opts     *ClientOptions
	buffers  buffers // of all connections
	redialer Redialer
	teller   teller

	ctx    context.Context // ends with the client
	cancel context.CancelCauseFunc

	goroutines sync.WaitGroup // of the teller, and one a connection that is not done
	done       chan struct{}

	mu       sync.Mutex
	conn     *Conn         // the last one, which may have ended; nil before
	greeting bool          // OnConnect runs on it
	ready    bool          // it is: OnConnect has returned
	changed  chan struct{} // closed when conn is ready
	draining bool          // there will be no other connection
	cause    error         // of the end
}

// NewClient starts to connect, at once and in the background, to a ws, wss, http or
// https URL, and stays connected until Close, Shutdown, or ClientOptions.GiveUp. The error
// is an *OptionError, or a *wsconn.DialError for a URL that cannot be tried.
func NewClient(url string, opts *ClientOptions) (*Client, error) {
	p, err := opts.prepare(url)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: p, changed: make(chan struct{}), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.teller.c = c
	c.redialer.init(c)
	go c.run()
	return c, nil
}

// Conn returns the connection that is ready, and waits for it, at most until ctx ends.
// Then the error is, for errors.Is and errors.As, that of ctx, and the last reason why
// there is no connection. Otherwise it is ErrClosed, ErrShutdown, or the error GiveUp gave
// up with; or says that ctx is that of OnConnect, for which the connection waits. It may end
// at any time; the Client then makes another one.
func (c *Client) Conn(ctx context.Context) (*Conn, error) {
	for {
		c.mu.Lock()
		c.checkReady()
		conn, ready, greeting, over, changed := c.conn, c.ready, c.greeting, c.cause, c.changed
		if over == nil && c.draining {
			over = ErrShutdown
		}
		c.mu.Unlock()
		switch {
		case ready:
			return conn, nil
		case over != nil:
			return nil, &noConnection{why: over}
		case greeting && belongs(ctx, conn):
			return nil, errConnecting
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
		case <-ctx.Done():
			return nil, &noConnection{why: contextError(ctx), last: c.redialer.reason()}
		}
	}
}

// Redial ends the pause before the next attempt, for a network that is back, or a user who
// does not want to wait. Where there is no pause it does nothing.
func (c *Client) Redial() { c.redialer.now() }

// Close ends the Client and its connection as Conn.Close does, and returns at once. It may
// be called from handlers, from the functions of ClientOptions, and again. It returns nil.
func (c *Client) Close() error {
	c.end(ErrClosed)
	return nil
}

// Shutdown shuts the connection down as Conn.Shutdown does; there will be no other one.
// Calls that wait for a connection fail with ErrShutdown. It waits for Done, which neither
// a handler nor a function of ClientOptions may wait for. The error is that of the
// connection where it broke meanwhile, or the error of ctx: then the Client is closed at
// once. A session without a socket (see package resume) waits for one, as long as ctx lets
// it, where something was not acknowledged. On a Client that has ended it waits for Done.
func (c *Client) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	c.checkReady()
	conn := c.conn
	if !c.ready {
		conn = nil
	}
	c.draining = true
	c.mu.Unlock()
	var err error
	if conn != nil {
		err = conn.Shutdown(ctx)
	}
	c.end(ErrShutdown)
	select {
	case <-c.done:
		return err
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// Done is closed when the Client has ended and every goroutine of it and of its
// connections too, handlers included.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is nil while the Client lives, and after Close or Shutdown. Otherwise it is the error
// that GiveUp gave up with.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == ErrClosed || c.cause == ErrShutdown {
		return nil
	}
	return c.cause
}

// end ends the client. The first cause wins.
func (c *Client) end(cause error) {
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	c.cause = cause
	conn := c.conn
	c.mu.Unlock()
	c.cancel(cause)
	if conn != nil {
		conn.end(cause)
	}
}

// run keeps the client connected. It alone makes connections, and one at a time, however
// many wait for it.
func (c *Client) run() {
	for c.ctx.Err() == nil {
		c.live()
	}
	c.teller.state(ClientState{Phase: Ended, Err: c.Err()})
	c.goroutines.Wait()
	close(c.done)
}

// live is the life of one connection, from the pause before it to its end.
func (c *Client) live() {
	if c.redialer.pause(c.ctx) != nil { // Dial waits too, but Session may fail before
		return
	}
	conn, err := c.connect()
	if err != nil {
		if c.ctx.Err() == nil {
			c.redialer.failed(err)
		}
		return
	}
	<-conn.ctx.Done()
	c.mu.Lock()
	c.checkReady()
	draining := c.draining
	c.mu.Unlock()
	cause := conn.endCause()
	switch {
	case draining:
		c.end(ErrShutdown)
	case c.ctx.Err() != nil:
	case !local(cause) && c.givesUp(cause):
		c.teller.state(ClientState{Phase: Disconnected, Err: cause})
		c.end(cause)
	default:
		c.teller.state(ClientState{Phase: Disconnected, Err: cause, Wait: c.redialer.lose(cause)})
	}
}

// checkReady notes that the connection which was ready has ended. c.mu is held.
func (c *Client) checkReady() {
	if c.ready && c.conn.ctx.Err() != nil {
		c.ready, c.changed = false, make(chan struct{})
	}
}

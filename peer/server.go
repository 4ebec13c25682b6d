package peer

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Server is an http.Handler that accepts connections and keeps them. It does not
// listen; an http.Server does. http.Server.Shutdown knows nothing of WebSockets,
// so shut down the http.Server first, then this.
type Server struct {
	opts    *Options
	buffers buffers

	mu     sync.Mutex
	conns  map[*Conn]struct{}
	places int // connections and upgrades under way
	held   int // of these, connections
	closed bool
	empty  chan struct{} // not nil while Shutdown waits for the last place
}

// NewServer returns a Server whose connections all have opts. It panics with an
// *OptionError if opts are wrong.
func NewServer(opts *Options) *Server {
	p, err := opts.prepare()
	if err != nil {
		panic(err)
	}
	p.Accepts = true
	return &Server{opts: p, conns: make(map[*Conn]struct{})}
}

// ServeHTTP upgrades a request to a connection, which lives on after it returns.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.takePlace() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	var c *Conn
	admitted := false
	defer func() { // also where a function of Options panics
		if c == nil {
			s.leave(nil, admitted)
		}
	}()
	admit := func() (err error) {
		admitted, err = s.admit()
		return err
	}
	c, err := accept(w, r, s.opts, &s.buffers, admit, func(c *Conn) { s.leave(c, true) })
	if err != nil {
		return
	}
	s.mu.Lock()
	closed := s.closed
	select {
	case <-c.done: // leave has been called, and found nothing
	default:
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		c.end(goingAway{})
	}
}

// admit takes the place of a connection.
func (s *Server) admit() (ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := s.opts.Limits.Connections; s.held >= most {
		return false, &LimitError{What: "Connections", Limit: int64(most)}
	}
	s.held++
	return true, nil
}

// spare is how many upgrades may be under way that are not known to be connections.
const spare = 64

func (s *Server) takePlace() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.opts.Limits.Connections
	if s.opts.Transport != nil {
		most += spare // an upgrade may belong to a connection that is here, and then needs no place
	}
	if s.closed || s.places >= most {
		return false
	}
	s.places++
	return true
}

// leave gives a place back, of an upgrade or of a connection.
func (s *Server) leave(c *Conn, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places--
	if admitted {
		s.held--
	}
	delete(s.conns, c)
	s.checkEmpty()
}

// checkEmpty lets Shutdown go on when nothing is left. s.mu is held.
func (s *Server) checkEmpty() {
	if s.empty != nil && s.places == 0 {
		close(s.empty)
		s.empty = nil
	}
}

// Conns returns the connections that are alive, in no order.
func (s *Server) Conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// Shutdown refuses new connections, and shuts down all there are as
// Conn.Shutdown does, all at the same time. It returns the first error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.close()
	var group errgroup.Group
	for _, c := range s.Conns() {
		group.Go(func() error { return c.shutdown(ctx, goingAway{}) })
	}
	err := group.Wait()
	s.mu.Lock()
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.checkEmpty()
	s.mu.Unlock()
	select { // for the upgrades that were under way
	case <-empty:
		return err
	case <-ctx.Done():
		return errors.Join(err, contextError(ctx))
	}
}

// Close refuses new connections and closes all there are, at once. It returns
// nil.
func (s *Server) Close() error {
	s.close()
	for _, c := range s.Conns() {
		_ = c.Close()
	}
	return nil
}

func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

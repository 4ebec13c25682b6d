package peer

import (
	"context"
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

	upgrades map[string]int // under way, by principal
	closed   bool
	empty    chan struct{} // not nil while Shutdown waits for the last place

	ctx    context.Context // ends when no more connections are taken
	cancel context.CancelCauseFunc
}

// NewServer returns a Server whose connections all have opts. It panics with an
// *OptionError if opts are wrong.
func NewServer(opts *Options) *Server {
	p, err := opts.prepare()
	if err != nil {
		panic(err)
	}
	p.Accepts = true
	s := &Server{opts: p, conns: make(map[*Conn]struct{}), upgrades: make(map[string]int)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// ServeHTTP upgrades a request to a connection, which lives on after it returns.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.takePlace() {
		refuseForNow(w)
		return
	}
	up := &upgrade{server: s}
	var c *Conn
	defer func() { up.end(c) }()                        // also where a function of Options panics
	ctx, cancel := context.WithCancelCause(r.Context()) // for an Options.Transport that waits
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(goingAway{}) })()
	c, err := accept(w, r.WithContext(ctx), s.opts, &s.buffers, up)
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

// leave gives the place of a connection back.
func (s *Server) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places--
	s.held--
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
		return or(err, contextError(ctx))
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
	s.cancel(goingAway{})
}

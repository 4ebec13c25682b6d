package resume_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/wsconn"
)

// world is an accepting end and a network to it, in memory.
type world struct {
	t        testing.TB
	sessions *resume.Sessions
	opts     *peer.Options // of the accepting end

	mu         sync.Mutex
	principal  string           // of who begins to dial
	plain      bool             // the network agrees on no subprotocol
	down       bool             // nobody can dial
	sockets    []*socket        // of the dialling end, in the order they were dialled
	there      []*socket        // their other ends
	conns      []*peer.Conn     // of the accepting end, likewise
	transports []peer.Transport // below these
	accepting  sync.WaitGroup
}

func newWorld(t testing.TB, o *resume.Options, opts *peer.Options) *world {
	return &world{t: t, sessions: resume.NewSessions(o), opts: opts, principal: "somebody"}
}

// socket is a pipe with a subprotocol, that can be cut.
type socket struct {
	peer.Transport
	plain bool
	other *socket
	deaf  atomic.Bool // what arrives, and what is written, is lost
}

// Read drops what comes while the socket is deaf.
func (s *socket) Read(ctx context.Context, buf []byte) ([]byte, error) {
	for {
		msg, err := s.Transport.Read(ctx, buf)
		if err != nil || !s.deaf.Load() {
			return msg, err
		}
	}
}

// deafen has nothing arrive any more at either end.
func (s *socket) deafen() {
	s.deaf.Store(true)
	s.other.deaf.Store(true)
}

func (s *socket) Subprotocol() string {
	if s.plain {
		return ""
	}
	return resume.Subprotocol
}

// errCut is how a cut looks at the end that sees it.
var errCut = &wsconn.CloseError{Code: 1006, Err: errors.New("cut")}

func (s *socket) cut() { _ = s.Close(errCut) }

var errDown = errors.New("the network is down")

// dial makes a socket to the accepting end.
func (w *world) dial(principal string) (peer.Transport, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, errDown
	}
	a, b := peer.Pipe()
	here, there := &socket{Transport: a, plain: w.plain}, &socket{Transport: b, plain: w.plain}
	here.other, there.other = there, here
	w.sockets, w.there = append(w.sockets, here), append(w.there, there)
	w.accepting.Go(func() { w.accept(there, principal) })
	return here, nil
}

// accept is what a Server does.
func (w *world) accept(s *socket, principal string) {
	if s.plain {
		w.serve(s)
		return
	}
	w.mu.Lock()
	sessions := w.sessions
	w.mu.Unlock()
	t, err := sessions.Accept(peer.WithPrincipal(context.Background(), principal), s)
	switch {
	case err != nil:
		_ = s.Close(err)
	case t != nil:
		w.serve(t)
	}
}

func (w *world) serve(t peer.Transport) {
	opts := peer.Options{}
	if w.opts != nil {
		opts = *w.opts
	}
	opts.Accepts = true
	c := peer.New(t, &opts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns, w.transports = append(w.conns, c), append(w.transports, t)
}

// cut cuts the newest socket.
func (w *world) cut() { w.socket().cut() }

func (w *world) socket() *socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sockets[len(w.sockets)-1]
}

// all are the sockets of the dialling end so far.
func (w *world) all() []*socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sockets)
}

// far is the other end of the first of them.
func (w *world) far() *socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.there[0]
}

// transport is what is below the first connection of the accepting end.
func (w *world) transport() peer.Transport {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.transports[0]
}

func (w *world) allConns() []*peer.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.conns)
}

func (w *world) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// restart has the accepting end forget everything, and cuts the newest socket.
func (w *world) restart() {
	w.mu.Lock()
	w.sessions = resume.NewSessions(nil)
	w.mu.Unlock()
	w.cut()
}

// conn is the newest connection of the accepting end.
func (w *world) conn() *peer.Conn {
	for {
		if all := w.allConns(); len(all) > 0 {
			return all[len(all)-1]
		}
		time.Sleep(time.Millisecond) // it has been opened, and is about to be here
	}
}

func (w *world) count() (sockets, conns int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sockets), len(w.conns)
}

// client is a client of this world, which ends with the test.
func (w *world) client(opts *peer.ClientOptions, o *resume.Options) *peer.Client {
	w.t.Helper()
	var p peer.ClientOptions
	if opts != nil {
		p = *opts
	}
	principal := w.principal
	p.Dial = func(context.Context) (peer.Transport, error) { return w.dial(principal) }
	if p.FirstWait == 0 {
		p.FirstWait, p.MaxWait = 10*time.Millisecond, time.Second
	}
	c, err := peer.NewClient("", resume.Client(&p, o))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// connected is a client and its connection, a second after that was made.
func (w *world) connected() (*peer.Client, *peer.Conn) {
	w.t.Helper()
	c := w.client(nil, nil)
	conn, err := c.Conn(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(time.Second)
	return c, conn
}

// end closes everything, and waits for it.
func (w *world) end(c *peer.Client) {
	_ = c.Close()
	<-c.Done()
	w.accepting.Wait()
	for _, c := range w.allConns() {
		_ = c.Close()
		<-c.Done()
	}
}

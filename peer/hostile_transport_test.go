package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// slowly is a Transport whose TryWrite takes its time.
type slowly struct {
	peer.Transport
	delay atomic.Int64
}

func (s *slowly) Self() any { return s }

func (s *slowly) TryWrite(msg []byte) (took, flushed bool) {
	time.Sleep(time.Duration(s.delay.Load()))
	return true, s.Write(context.Background(), msg) == nil
}

// What is queued while another message is written inline stays queued when the
// connection's goroutines are dismissed as idle.
func TestIdleKeepsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		served := peer.New(b, &peer.Options{Handler: answer})
		s := &slowly{Transport: a}
		c := peer.New(s, nil)
		defer func() { c.Close(); <-c.Done(); <-served.Done() }()
		// The writer was used, and waits.
		if err := c.Notify(t.Context(), "n", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		s.delay.Store(int64(2500 * time.Millisecond)) // longer than idle goroutines are kept
		first := make(chan error, 1)
		go func() { first <- c.Call(t.Context(), "m", nil, nil) }()
		time.Sleep(100 * time.Millisecond)
		s.delay.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Call(ctx, "m", nil, nil); err != nil { // queued meanwhile
			t.Errorf("Call = %v, want its answer", err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first Call = %v, want its answer", err)
		}
	})
}

var answer = peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return []int{1}, nil })

// looking embeds a connection, and with it all methods it has, and looks at every
// message.
type looking struct {
	*wsconn.Conn
	reads, writes *atomic.Int64
}

func (c looking) Read(ctx context.Context, buf []byte) ([]byte, error) {
	msg, err := c.Conn.Read(ctx, buf)
	if err == nil {
		c.reads.Add(1)
	}
	return msg, err
}

func (c looking) Write(ctx context.Context, msgs ...[]byte) error {
	c.writes.Add(int64(len(msgs)))
	return c.Conn.Write(ctx, msgs...)
}

// A Transport that embeds another sees every message, and none passes it by through
// a method that it only inherits.
func TestEmbeddedTransport(t *testing.T) {
	_, url := serve(t, &peer.Options{Handler: answer})
	ws, _, err := wsconn.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := looking{ws, new(atomic.Int64), new(atomic.Int64)}
	c := peer.New(w, nil)
	for range 10 {
		if err := c.Call(t.Context(), "m", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if w.reads.Load() != 10 || w.writes.Load() != 10 {
		t.Errorf("10 calls were %d Reads and %d Writes of the Transport, want 10 each", w.reads.Load(), w.writes.Load())
	}
	c.Close()
	<-c.Done()
}

// stuck is a Transport that writes nothing before it is told to.
type stuck struct {
	peer.Transport
	hold chan struct{}
}

func (s stuck) Write(ctx context.Context, msgs ...[]byte) error {
	<-s.hold
	return s.Transport.Write(ctx, msgs...)
}

// leaving ends its goroutine when it is encoded for the second time.
type leaving struct{ n *atomic.Int32 }

func (l leaving) MarshalJSON() ([]byte, error) {
	if l.n.Add(1) == 2 {
		runtime.Goexit()
	}
	return json.Marshal([]string{strings.Repeat("x", 3<<10)})
}

// The room of a message whose encoding never ended is given back.
func TestGoexitGivesRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		served := peer.New(b, nil)
		s := stuck{a, make(chan struct{})}
		// With JSONv1, which encodes once and not once more on an error.
		c := peer.New(s, &peer.Options{JSON: peer.JSONv1{}, Limits: peer.Limits{QueueBytes: 4 << 10}})
		defer func() { c.Close(); <-c.Done(); <-served.Done() }()
		if err := c.Notify(t.Context(), "n", []string{strings.Repeat("y", 2900)}); err != nil { // fills the room
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_ = c.Notify(t.Context(), "n", leaving{new(atomic.Int32)}) // waits for room, and then leaves
		}()
		synctest.Wait()
		close(s.hold)
		<-gone
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Notify(ctx, "n", []string{strings.Repeat("z", 2900)}); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Notify = %v, want room for it", err)
		}
	})
}

// A connection that is closed while a message is written inline ends all of its
// goroutines, the one that would write the next among them.
func TestCloseDuringInlineWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		served := peer.New(b, &peer.Options{Handler: answer})
		s := &slowly{Transport: a}
		c := peer.New(s, nil)
		if err := c.Notify(t.Context(), "n", nil); err != nil { // the writer was used, and waits
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		s.delay.Store(int64(500 * time.Millisecond))
		called := make(chan error, 1)
		go func() { called <- c.Call(t.Context(), "m", nil, nil) }()
		time.Sleep(100 * time.Millisecond)
		c.Close()
		select {
		case <-c.Done():
		case <-time.After(time.Minute):
			t.Error("Done is not closed a minute after Close")
		}
		if err := <-called; !errors.Is(err, peer.ErrClosed) {
			t.Errorf("Call = %v, want ErrClosed", err)
		}
		<-served.Done()
	})
}

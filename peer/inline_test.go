package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
)

// What a tries may answer.
const (
	refuses = iota // TryWrite takes nothing
	holds          // takes the message, and wants a Write
	takes          // takes and sends it
	panicky
)

// tries is a Transport with TryWrite that writes down what leaves, in order, and
// answers calls with their params, "null" where they have none.
type tries struct {
	try   func() int            // what TryWrite does; it may wait for something
	write func(n int) error     // before a Write of n messages; nil does nothing
	mute  bool                  // calls are not answered
	in    chan string           // what Read returns
	done  chan struct{}         // closed by Close
	once  sync.Once             // of it
	users atomic.Int32          // goroutines in TryWrite or Write
	wrong atomic.Pointer[error] // of how it was used

	mu      sync.Mutex
	left    []string
	held    string // taken and not sent
	inlined int    // sent by TryWrite
	flushed int    // Writes without a message
}

func newTries(do int) *tries {
	return &tries{try: func() int { return do }, in: make(chan string, 1<<14), done: make(chan struct{})}
}

func (x *tries) enter(what string) func() {
	if x.users.Add(1) != 1 {
		x.fails(what + " beside another")
	}
	return func() { x.users.Add(-1) }
}

func (x *tries) fails(text string) {
	err := errors.New(text)
	x.wrong.CompareAndSwap(nil, &err)
}

func (x *tries) Read(_ context.Context, buf []byte) ([]byte, error) {
	select {
	case text := <-x.in:
		return append(buf, text...), nil
	case <-x.done:
		return nil, peer.ErrClosed
	}
}

// Self says that TryWrite is its own.
func (x *tries) Self() any { return x }

func (x *tries) TryWrite(msg []byte) (took, flushed bool) {
	defer x.enter("TryWrite")()
	switch do := x.try(); do {
	case refuses:
		return false, false
	case panicky:
		panic("TryWrite")
	case holds:
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.held != "" {
			x.fails("TryWrite of a second message before the Write that must follow")
		}
		x.held = string(msg)
		return true, false
	default:
		x.mu.Lock()
		x.inlined++
		x.mu.Unlock()
		x.send(string(msg))
		return true, true
	}
}

func (x *tries) Write(_ context.Context, msgs ...[]byte) error {
	defer x.enter("Write")()
	if x.write != nil {
		if err := x.write(len(msgs)); err != nil {
			return err
		}
	}
	x.mu.Lock()
	held := x.held
	x.held = ""
	if len(msgs) == 0 {
		x.flushed++
		if held == "" {
			x.fails("Write of nothing, with nothing held")
		}
	}
	x.mu.Unlock()
	if held != "" {
		x.send(held)
	}
	for _, msg := range msgs {
		x.send(string(msg))
	}
	return nil
}

func (x *tries) Close(error) error { x.once.Do(func() { close(x.done) }); return nil }

func (x *tries) send(text string) {
	x.mu.Lock()
	x.left = append(x.left, text)
	x.mu.Unlock()
	var m struct {
		ID     int
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal([]byte(text), &m) == nil && m.Method != "" && m.ID != 0 && !x.mute {
		if m.Params == nil {
			m.Params = json.RawMessage("null")
		}
		x.in <- result(m.ID, string(m.Params))
	}
}

func (x *tries) sent() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.left)
}

// wantRules fails t where x was used as a Transport is not.
func (x *tries) wantRules(t *testing.T) {
	t.Helper()
	if err := x.wrong.Load(); err != nil {
		t.Error(*err)
	}
}

// TestInlineOrder: calls, notifications and answers of several goroutines leave
// once each, in the order of each goroutine, whatever TryWrite says.
func TestInlineOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 5)) // TryWrite runs one at a time
	for name, try := range map[string]func() int{
		"refuses": func() int { return refuses }, "holds": func() int { return holds },
		"takes": func() int { return takes }, "random": func() int { return random.IntN(3) },
	} {
		t.Run(name, func(t *testing.T) {
			for senders := 1; senders <= 4; senders += 3 {
				x := newTries(0)
				x.try = try
				conn := peertest.Start(t, x, methods{"echo": func(_ context.Context, req *peer.Request) (any, error) { return req.Params, nil }}.options())
				const each = 150
				var all sync.WaitGroup
				for g := range senders {
					all.Go(func() {
						for i := range each {
							params := []int{g, i}
							if i%3 == 2 {
								if err := conn.Notify(t.Context(), "n", params); err != nil {
									t.Errorf("Notify(%v) = %v", params, err)
								}
								continue
							}
							var got []int
							if err := conn.Call(t.Context(), "c", params, &got); err != nil || !slices.Equal(got, params) {
								t.Errorf("Call(%v) = %v, %v", params, got, err)
							}
						}
					})
					x.in <- call(1000+g, "echo")
				}
				all.Wait()
				eventually(t, "everything has left", func() bool { return len(x.sent()) >= senders*(each+1) })
				x.wantRules(t)
				next, answered := make([]int, senders), 0
				for _, text := range x.sent() {
					var m struct {
						Method string
						Params []int
					}
					if err := json.Unmarshal([]byte(text), &m); err != nil {
						t.Fatal(err)
					}
					if m.Method == "" {
						answered++
						continue
					}
					if g := m.Params[0]; m.Params[1] != next[g] {
						t.Fatalf("message %d of goroutine %d left where %d was next", m.Params[1], g, next[g])
					}
					next[m.Params[0]]++
				}
				if answered != senders || slices.Min(next) != each {
					t.Errorf("%d answers and %v messages left, want %d and %d of each", answered, next, senders, each)
				}
			}
		})
	}
}

// TestInlineStates: how far a call got when the connection ends at each point.
func TestInlineStates(t *testing.T) {
	cut := errors.New("the cable is cut")
	for _, c := range []struct {
		name  string
		try   int
		write error // of Write, which waits for the end before it
		close bool  // instead of an error of Write
		cause error
		want  pending.State
	}{
		{"refused, Write fails", refuses, cut, false, cut, pending.MaybeSent},
		{"refused, closed in Write", refuses, cut, true, peer.ErrClosed, pending.MaybeSent},
		{"held, Write fails", holds, cut, false, cut, pending.MaybeSent},
		{"held, closed in Write", holds, cut, true, peer.ErrClosed, pending.MaybeSent},
		{"held, written, closed", holds, nil, true, peer.ErrClosed, pending.Sent},
		{"taken, closed", takes, nil, true, peer.ErrClosed, pending.Sent},
		{"panics", panicky, nil, false, nil, pending.MaybeSent},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, end := newTries(c.try), make(chan struct{})
				x.mute = true
				x.write = func(int) error {
					if c.write != nil {
						<-end
					}
					return c.write
				}
				conn := peertest.Start(t, x, nil)
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { first <- conn.Call(t.Context(), "x", nil, nil) }()
				synctest.Wait()
				if c.write != nil { // it stands in Write, so the next one waits behind
					go func() { second <- conn.Call(t.Context(), "y", nil, nil) }()
					synctest.Wait()
				}
				if c.close {
					_ = conn.Close()
				}
				close(end)
				err := <-first
				wantSent(t, err, c.want)
				if c.cause != nil && !errors.Is(err, c.cause) {
					t.Errorf("Call = %v, want %v", err, c.cause)
				}
				if c.write != nil {
					wantSent(t, <-second, pending.NotSent)
				}
				wantSent(t, conn.Call(t.Context(), "z", nil, nil), pending.NotSent)
				<-conn.Done()
				if inlined, flushed := x.inlined == 1, x.flushed == 1; c.try != panicky && (inlined != (c.try == takes) || flushed != (c.try == holds && c.write == nil)) {
					t.Errorf("sent by TryWrite %t, by a Write without messages %t", inlined, flushed)
				}
				if c.try == panicky && conn.Err() == nil {
					t.Error("Err() = nil after TryWrite panicked")
				}
			})
		})
	}
}

// TestInlineGivenUp: a call that waits behind a Write and is given up does not
// leave, nor does its cancellation; one that TryWrite refused stands first and
// may have left, so both do.
func TestInlineGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, open := newTries(refuses), make(chan struct{})
		x.mute = true
		x.write = func(int) error { <-open; return nil }
		conn := peertest.Start(t, x, nil)
		ctx, cancel := context.WithCancel(t.Context())
		refused, queued := make(chan error, 1), make(chan error, 1)
		go func() { refused <- conn.Call(ctx, "refused", nil, nil) }()
		synctest.Wait()
		go func() { queued <- conn.Call(ctx, "queued", nil, nil) }()
		synctest.Wait()
		cancel()
		wantSent(t, <-refused, pending.MaybeSent)
		wantSent(t, <-queued, pending.NotSent)
		close(open)
		synctest.Wait()
		if got, want := strings.Join(x.sent(), "\n"), call(1, "refused")+"\n"+cancelOf(1); got != want {
			t.Errorf("left\n%s, want\n%s", got, want)
		}
		x.wantRules(t)
	})
}

// TestInlineLeavesTheRest: what was queued while a caller wrote by itself leaves
// after it, though the caller is not the writer; so do cancellations.
func TestInlineLeavesTheRest(t *testing.T) {
	for name, do := range map[string]int{"refuses": refuses, "holds": holds, "takes": takes} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, open := newTries(0), make(chan struct{})
				x.try = func() int { <-open; return do }
				conn := peertest.Start(t, x, nil)
				called := make(chan error, 1)
				go func() { called <- conn.Call(t.Context(), "c", nil, nil) }()
				synctest.Wait()
				want := []string{call(1, "c")}
				for i := range 3 {
					if err := conn.Notify(t.Context(), fmt.Sprint("n", i), nil); err != nil {
						t.Fatal(err)
					}
					want = append(want, notification(fmt.Sprint("n", i)))
				}
				close(open)
				synctest.Wait()
				if got := x.sent(); !slices.Equal(got, want) {
					t.Errorf("left %q, want %q", got, want)
				}
				if err := <-called; err != nil {
					t.Errorf("Call = %v", err)
				}
				x.wantRules(t)
			})
		})
	}
}

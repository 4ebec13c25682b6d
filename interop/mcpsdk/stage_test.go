package mcpsdk_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// The tools that a server has, whichever library it is made of:
//
//	add    a + b
//	fail   the error luckless
//	ask    what the client answers to question n, asked meanwhile
//	count  n notifications of progress, then n
//	hold   n, once gate n is open, or the end of its context
var toolNames = []string{"add", "ask", "count", "fail", "hold"}

// The questions of the tool "ask", by n. Clients find the sum by the tool "add"; the
// other one they hold.
var questions = []string{"What is 20 + 22?", "What for?"}

// What the tool "fail" answers.
const (
	lucklessCode    = 4001
	lucklessMessage = "no such luck"
	lucklessData    = `{"tries":3}`
)

// patience bounds what may only take long where something is broken.
const patience = 30 * time.Second

// calls is how many calls are open at once.
const calls = 200

// stage is where what an end runs meets the test.
type stage struct {
	began chan int   // a hold has begun
	ended chan error // the context of a hold has ended, with that cause
	gates [calls]chan struct{}
}

func newStage() *stage {
	s := &stage{began: make(chan int, calls), ended: make(chan error, calls)}
	for n := range s.gates {
		s.gates[n] = make(chan struct{})
	}
	return s
}

func (s *stage) hold(ctx context.Context, n int) (string, error) {
	s.began <- n
	select {
	case <-s.gates[n]:
		return strconv.Itoa(n), nil
	case <-ctx.Done():
		s.ended <- context.Cause(ctx)
		return "", ctx.Err()
	}
}

// unordered has all calls of hold open at once and lets them return in an order of
// its own, the next one when the answer to the last one is there: nothing but an
// answer that finds its caller by its id comes through.
func (s *stage) unordered(t *testing.T, call func(ctx context.Context, n int) (string, error)) {
	t.Helper()
	type reply struct {
		n    int
		text string
		err  error
	}
	replies := make(chan reply, calls)
	for n := range calls {
		go func() {
			text, err := call(t.Context(), n)
			replies <- reply{n, text, err}
		}()
	}
	for range calls {
		receive(t, "hold begins", s.began)
	}
	for _, n := range rand.New(rand.NewPCG(2025, 11)).Perm(calls) {
		close(s.gates[n])
		if got, want := receive(t, "an answer", replies), (reply{n, strconv.Itoa(n), nil}); got != want {
			t.Fatalf("answer to call %d: %q, %v; want that to call %d: %q", got.n, got.text, got.err, n, want.text)
		}
	}
}

// receive fails the test if nothing comes.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}

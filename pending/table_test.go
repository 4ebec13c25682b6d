package pending_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/pending"
)

func add(t *testing.T, table *pending.Table[string], method string) *pending.Slot[string] {
	t.Helper()
	s, err := table.Add(method, "")
	if err != nil {
		t.Fatalf("Add(%q) = %v", method, err)
	}
	return s
}

func TestSettle(t *testing.T) {
	table := pending.New[string](0, 8)
	a, b := add(t, table, "a"), add(t, table, "b")
	if a.ID != 1 || b.ID != 2 {
		t.Errorf("ids = %d, %d, want 1, 2", a.ID, b.ID)
	}
	for _, step := range []struct {
		id    int64
		value string
		want  bool
	}{{b.ID, "for b", true}, {a.ID, "for a", true}, {a.ID, "again", false}, {99, "unknown", false}, {0, "zero", false}, {-1, "negative", false}} {
		if got := table.Settle(step.id, step.value); got != step.want {
			t.Errorf("Settle(%d, %q) = %t, want %t", step.id, step.value, got, step.want)
		}
	}
	for s, want := range map[*pending.Slot[string]]string{a: "for a", b: "for b"} {
		if got, err := s.Wait(t.Context()); got != want || err != nil {
			t.Errorf("Wait of %s = %q, %v, want %q", s.Method, got, err, want)
		}
	}
	if n := table.Len(); n != 0 {
		t.Errorf("Len() = %d after all is settled", n)
	}
	if c := add(t, table, "c"); c.ID != 3 {
		t.Errorf("id = %d, want 3: ids are never reused", c.ID)
	}
}

func TestLimit(t *testing.T) {
	table := pending.New[string](2, 0)
	a := add(t, table, "a")
	add(t, table, "b")
	if _, err := table.Add("c", ""); !errors.Is(err, pending.ErrFull) {
		t.Fatalf("Add over the limit = %v, want ErrFull", err)
	}
	a.Drop()
	add(t, table, "d")
	if table.Has(a.ID) {
		t.Error("a dropped slot is still there")
	}
}

// TestWaitGivesUp: the end of the caller's context ends the wait at once, frees
// the slot, and leaves a memory of the call that a late answer finds once.
func TestWaitGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := pending.New[string](1, 8)
		s, err := table.Add("slow", "note")
		if err != nil {
			t.Fatal(err)
		}
		s.Leave()
		s.Left()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v, want the context's error", err)
		}
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("Wait took %v, want 200ms", took)
		}
		if _, err := table.Add("next", ""); err != nil {
			t.Errorf("Add after a caller gave up = %v, want the slot free", err)
		}
		time.Sleep(3 * time.Second)
		if table.Settle(s.ID, "late") {
			t.Error("a late answer settled a call")
		}
		a, ok := table.Late(s.ID)
		if !ok || a.Method != "slow" || a.Note != "note" || a.Began != began || a.Ended.Sub(a.Began) != 200*time.Millisecond {
			t.Errorf("Late = %+v, %t", a, ok)
		}
		if _, ok := table.Late(s.ID); ok {
			t.Error("the same answer is late twice")
		}
		if _, ok := table.Late(4711); ok {
			t.Error("an id never given out is late")
		}
	})
}

func TestRemembersTheNewest(t *testing.T) {
	table := pending.New[string](0, 2)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 3 {
		s := add(t, table, fmt.Sprint(i))
		s.Leave()
		if _, err := s.Wait(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("Wait = %v", err)
		}
	}
	for id, want := range map[int64]bool{1: false, 2: true, 3: true} {
		if _, got := table.Late(id); got != want {
			t.Errorf("Late(%d) = %t, want %t", id, got, want)
		}
	}
}

func TestStates(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		steps func(*pending.Slot[string])
		want  pending.State
		late  bool // whether an answer could come
		leave bool // whether the bytes may leave after the caller gave up
	}{
		{"not sent", func(*pending.Slot[string]) {}, pending.NotSent, false, false},
		{"maybe sent", func(s *pending.Slot[string]) { s.Leave() }, pending.MaybeSent, true, false},
		{"sent", func(s *pending.Slot[string]) { s.Leave(); s.Left() }, pending.Sent, true, false},
	} {
		table := pending.New[string](0, 8)
		s := add(t, table, "m")
		c.steps(s)
		if got := s.State(); got != c.want || got.String() != c.name {
			t.Errorf("%s: State() = %v", c.name, got)
		}
		if _, err := s.Wait(ended); err == nil {
			t.Errorf("%s: Wait with an ended context succeeded", c.name)
		}
		if got := s.Leave(); got != c.leave {
			t.Errorf("%s: Leave() after giving up = %t, want %t", c.name, got, c.leave)
		}
		if got := s.State(); got != c.want {
			t.Errorf("%s: State() after giving up = %v", c.name, got)
		}
		if _, got := table.Late(s.ID); got != c.late {
			t.Errorf("%s: Late = %t, want %t", c.name, got, c.late)
		}
	}
}

func TestFail(t *testing.T) {
	table := pending.New[string](0, 8)
	a, b := add(t, table, "a"), add(t, table, "b")
	first, second := errors.New("first"), errors.New("second")
	table.Fail(first)
	table.Fail(second)
	for _, s := range []*pending.Slot[string]{a, b} {
		if _, err := s.Wait(t.Context()); err != first {
			t.Errorf("Wait = %v, want the first cause", err)
		}
	}
	if _, err := table.Add("c", ""); err != first {
		t.Errorf("Add = %v, want the first cause", err)
	}
	if table.Settle(a.ID, "late") {
		t.Error("Settle settled a failed call")
	}
}

// TestAnswerWins: an answer that is there is not lost to a context that has
// ended, however the two race.
func TestAnswerWins(t *testing.T) {
	for range 2000 {
		table := pending.New[string](0, 8)
		s := add(t, table, "m")
		s.Leave()
		ctx, cancel := context.WithCancel(t.Context())
		settled := make(chan bool, 1)
		go func() { settled <- table.Settle(s.ID, "answer") }()
		go cancel()
		value, err := s.Wait(ctx)
		if did := <-settled; did != (value == "answer" && err == nil) {
			t.Fatalf("Settle = %t and Wait = %q, %v", did, value, err)
		}
		cancel()
	}
}

// TestAgainstMap drives the table and a plain map with the same random steps.
func TestAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const limit = 20
	table := pending.New[string](limit, 1000)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	waiting := map[int64]*pending.Slot[string]{}
	gone := map[int64]bool{}
	last := int64(0)
	pick := func() int64 { return 1 + r.Int64N(last+2) }
	for step := range 20_000 {
		switch id := pick(); r.IntN(5) {
		case 0, 1:
			s, err := table.Add("m", "")
			if full := len(waiting) == limit; full != errors.Is(err, pending.ErrFull) {
				t.Fatalf("step %d: Add with %d waiting = %v", step, len(waiting), err)
			}
			if err == nil {
				if last++; s.ID != last {
					t.Fatalf("step %d: id %d, want %d", step, s.ID, last)
				}
				waiting[s.ID] = s
			}
		case 2:
			want := fmt.Sprint("v", id)
			s := waiting[id]
			if got := table.Settle(id, want); got != (s != nil) {
				t.Fatalf("step %d: Settle(%d) = %t", step, id, got)
			}
			if s != nil {
				if got, err := s.Wait(ended); got != want || err != nil {
					t.Fatalf("step %d: Wait(%d) = %q, %v", step, id, got, err)
				}
				delete(waiting, id)
			}
		case 3:
			if s := waiting[id]; s != nil {
				s.Leave()
				if _, err := s.Wait(ended); !errors.Is(err, context.Canceled) {
					t.Fatalf("step %d: Wait(%d) = %v", step, id, err)
				}
				delete(waiting, id)
				gone[id] = true
			}
		case 4:
			if _, got := table.Late(id); got != gone[id] && len(gone) < 1000 {
				t.Fatalf("step %d: Late(%d) = %t, want %t", step, id, got, gone[id])
			}
			delete(gone, id)
		}
		if got := table.Len(); got != len(waiting) {
			t.Fatalf("step %d: Len() = %d, want %d", step, got, len(waiting))
		}
	}
}

// TestConcurrent: 1,000 calls at once each get their own answer.
func TestConcurrent(t *testing.T) {
	table := pending.New[string](0, 8)
	var wg sync.WaitGroup
	ids := make(chan int64, 1000)
	for range 1000 {
		wg.Go(func() {
			s, err := table.Add("m", "")
			if err != nil {
				t.Errorf("Add = %v", err)
				return
			}
			ids <- s.ID
			if got, err := s.Wait(t.Context()); got != fmt.Sprint(s.ID) || err != nil {
				t.Errorf("Wait(%d) = %q, %v", s.ID, got, err)
			}
		})
	}
	for range 1000 {
		id := <-ids
		table.Settle(id, fmt.Sprint(id))
	}
	wg.Wait()
}

func BenchmarkCall(b *testing.B) {
	table := pending.New[string](0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		s, _ := table.Add("m", "")
		s.Leave()
		s.Left()
		table.Settle(s.ID, "")
		_, _ = s.Wait(context.Background())
	}
}

// TestExhausted: ids stop at 2^53-1, the last integer that every end reads
// exactly, and do not wrap.
func TestExhausted(t *testing.T) {
	table := pending.New[string](0, 0)
	table.SetLast(pending.MaxID - 1)
	if s := add(t, table, "last"); s.ID != 9007199254740991 {
		t.Errorf("id = %d, want 2^53-1", s.ID)
	}
	if _, err := table.Add("more", ""); !errors.Is(err, pending.ErrExhausted) {
		t.Errorf("Add = %v, want ErrExhausted", err)
	}
}

// What had not left when the table failed left all the same, after its caller had been
// told that it was not sent.
func TestFailWithdraws(t *testing.T) {
	table := pending.New[int](0, 0)
	slot, err := table.Add("m", "")
	if err != nil {
		t.Fatal(err)
	}
	table.Fail(errors.New("broken"))
	if slot.Leave() || slot.State() != pending.NotSent {
		t.Errorf("after Fail the bytes may leave, or the state is %v", slot.State())
	}
}

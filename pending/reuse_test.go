package pending_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/duetrpc/duet/pending"
)

// TestSlotsAreUsedAgain: a slot that everybody released serves the next call, with
// what its caller kept and nothing else of the last one. A pool may drop slots,
// so it is enough that one of many comes again.
func TestSlotsAreUsedAgain(t *testing.T) {
	table := pending.New[string](0, 8)
	again := false
	for i := range 1000 {
		s, err := table.Add(fmt.Sprint("m", i), "note")
		if err != nil {
			t.Fatal(err)
		}
		if s.Kept != nil {
			again = true
			if s.Kept != any("kept") {
				t.Fatalf("Kept = %v", s.Kept)
			}
		}
		if s.Method != fmt.Sprint("m", i) || s.State() != pending.NotSent {
			t.Fatalf("call %d has method %q, state %q", i, s.Method, s.State())
		}
		s.Kept = "kept"
		if i%2 == 0 {
			s.Leave()
			s.Left()
			table.Settle(s.ID, "answer")
			if _, err := s.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			s.Drop()
		}
		s.Release()
	}
	if !again {
		t.Error("no slot was used again")
	}
}

// TestHeldSlotIsNotUsedAgain: as long as one holds it, a slot is the same call.
func TestHeldSlotIsNotUsedAgain(t *testing.T) {
	table := pending.New[string](0, 8)
	held := map[*pending.Slot[string]]int64{}
	for range 200 {
		s := add(t, table, "m")
		if id, taken := held[s]; taken {
			t.Fatalf("the slot of %d is that of %d, which is held", s.ID, id)
		}
		s.Hold()
		held[s] = s.ID
		s.Drop()
		s.Release()
	}
	for s, id := range held {
		if s.ID != id {
			t.Errorf("id of a held slot = %d, was %d", s.ID, id)
		}
		s.Release()
	}
}

// TestReuseRandom: many callers use slots again and again, while writers hold them
// and answers come in time, late, twice, or for ids of long ago. Each caller gets
// its own answer or none.
func TestReuseRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	table := pending.New[string](0, 1000)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var mu sync.Mutex
	settled := map[int64]bool{} // what Settle said, which it may say once
	gotten := map[int64]bool{}
	settle := func(id int64) {
		did := table.Settle(id, fmt.Sprint(id))
		if !did {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if settled[id] {
			t.Errorf("Settle(%d) = true twice", id)
		}
		settled[id] = true
	}
	var all, side sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 1500 {
				s, err := table.Add("m", "")
				if err != nil {
					t.Errorf("Add = %v", err)
					return
				}
				id, old, odd := s.ID, max(1, s.ID-r.Int64N(50)), r.IntN(4)
				if r.IntN(2) == 0 { // a writer
					s.Hold()
					side.Go(func() {
						if s.Leave() {
							s.Left()
						}
						if s.ID != id {
							t.Errorf("a held slot is %d, was %d", s.ID, id)
						}
						s.Release()
					})
				}
				side.Go(func() { // the reader
					settle(old)
					settle(id)
					if odd == 0 {
						settle(id)
					}
				})
				ctx := t.Context()
				if odd == 1 {
					ctx = ended
				}
				if odd == 2 {
					s.Drop()
				} else if value, err := s.Wait(ctx); err == nil {
					if value != fmt.Sprint(id) {
						t.Errorf("call %d got the answer %q", id, value)
					}
					mu.Lock()
					gotten[id] = true
					mu.Unlock()
				} else if !errors.Is(err, context.Canceled) || odd != 1 {
					t.Errorf("Wait = %v", err)
				}
				s.Release()
			}
		})
	}
	all.Wait()
	side.Wait()
	for id := range gotten {
		if !settled[id] {
			t.Errorf("call %d got an answer that nobody gave", id)
		}
	}
	if n := table.Len(); n != 0 {
		t.Errorf("Len() = %d in the end", n)
	}
}

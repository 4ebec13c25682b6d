package pending_test

import (
	"math/rand/v2"
	"testing"

	"github.com/duetrpc/duet/pending"
)

// wantPlaces fails t where the table keeps more places than most, or has as many
// calls beside them as are not beside.
func wantPlaces(t *testing.T, table *pending.Table[string], what string, most, beside int) {
	t.Helper()
	if p, b := table.Places(); p > most || b != beside {
		t.Errorf("%s: %d places and %d calls beside, want at most %d and %d", what, p, b, most, beside)
	}
}

// TestOneStaysOpen: the table does not grow while one call waits and a quarter of a million
// others come and go, and finds it afterwards.
func TestOneStaysOpen(t *testing.T) {
	table := pending.New[string](0, 8)
	open := add(t, table, "open")
	first := open.ID
	for i := range 250_000 {
		s, err := table.Add("m", "")
		if err != nil || s.ID != first+int64(i)+1 {
			t.Fatalf("Add = %v, %v", s, err)
		}
		if !table.Settle(s.ID, "") {
			t.Fatalf("Settle(%d) = false", s.ID)
		}
		_, _ = s.Wait(t.Context())
		s.Release()
	}
	wantPlaces(t, table, "later", 64, 0)
	if !table.Has(first) || table.Len() != 1 || !table.Settle(first, "at last") {
		t.Error("the call that stayed open is lost")
	}
	if got, err := open.Wait(t.Context()); got != "at last" || err != nil {
		t.Errorf("Wait = %q, %v", got, err)
	}
}

// TestPlaceIsTaken: calls whose ids share a place are told apart, also from those
// that are not there, and when the table grows.
func TestPlaceIsTaken(t *testing.T) {
	table := pending.New[string](0, 8)
	open := add(t, table, "open") // 1
	table.SetLast(16)
	beside := add(t, table, "beside") // 17, which is 1 of 16
	wantPlaces(t, table, "two at one place", 16, 1)
	for id, want := range map[int64]bool{1: true, 17: true, 33: false, 0: false, -15: false, 1 << 40: false} {
		if got := table.Has(id); got != want {
			t.Errorf("Has(%d) = %t, want %t", id, got, want)
		}
	}
	if table.Settle(33, "of another") {
		t.Error("Settle(33) = true, where 1 and 17 wait")
	}
	for range 20 {
		add(t, table, "more")
	}
	if p, _ := table.Places(); p < 32 {
		t.Errorf("%d places for 22 calls", p)
	}
	for _, s := range []*pending.Slot[string]{open, beside} {
		if !table.Settle(s.ID, s.Method) {
			t.Fatalf("Settle(%d) = false after growing", s.ID)
		}
		if got, err := s.Wait(t.Context()); got != s.Method || err != nil {
			t.Errorf("Wait of %s = %q, %v", s.Method, got, err)
		}
	}
	if n := table.Len(); n != 20 {
		t.Errorf("Len() = %d, want 20", n)
	}
}

// TestBurst: a burst of calls is found in any order, and what it took is given
// back once it is over.
func TestBurst(t *testing.T) {
	table := pending.New[string](0, 8)
	slots := make([]*pending.Slot[string], 100_000)
	for i := range slots {
		slots[i] = add(t, table, "m")
	}
	if n := table.Len(); n != len(slots) {
		t.Fatalf("Len() = %d", n)
	}
	rand.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
	for i, s := range slots {
		if i%2 == 0 {
			s.Drop()
		} else if !table.Settle(s.ID, "") {
			t.Fatalf("Settle(%d) = false", s.ID)
		}
	}
	wantPlaces(t, table, "after a burst", 0, 0)
	add(t, table, "next")
	wantPlaces(t, table, "the next", 16, 0)
}

// TestRingModel does the same to a ring and to a map, with ids that come one after
// the other, share their low bits, are negative, and are anything.
func TestRingModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ids := map[string]func(i int) int64{
		"in order":  func(i int) int64 { return int64(i) },
		"one place": func(i int) int64 { return int64(i) << 20 },
		"negative":  func(i int) int64 { return -int64(i) * 3 },
		"any":       func(int) int64 { return int64(random.Uint64()) },
	}
	for name, id := range ids {
		t.Run(name, func(t *testing.T) {
			var ring pending.Ring[int64]
			model := map[int64]*int64{}
			var known []int64
			for i := range 20_000 {
				n := id(i)
				if model[n] == nil && random.IntN(3) > 0 {
					ring.Put(n, &n)
					model[n] = &n
					known = append(known, n)
				} else if len(known) > 0 {
					n = known[random.IntN(len(known))] // there, or taken before
					if got := ring.Take(n); got != model[n] {
						t.Fatalf("Take(%d) = %v, want %v", n, got, model[n])
					}
					delete(model, n)
				}
				if ring.Find(n) != model[n] || ring.Len() != len(model) {
					t.Fatalf("Find(%d) = %v of %d, want %v of %d", n, ring.Find(n), ring.Len(), model[n], len(model))
				}
			}
			for n, want := range model {
				if ring.Take(n) != want {
					t.Fatalf("Take(%d) at the end is not what was put there", n)
				}
			}
			if ring.Len() != 0 || ring.Find(0) != nil {
				t.Error("the ring is not empty at the end")
			}
		})
	}
}

// TestRingOneValueTwice: one value under two ids that share a place is taken by each.
func TestRingOneValueTwice(t *testing.T) {
	var ring pending.Ring[string]
	v := "twice"
	ring.Put(1, &v)
	ring.Put(17, &v) // which is 1 of 16
	if ring.Take(17) != &v || ring.Find(17) != nil || ring.Find(1) != &v {
		t.Errorf("after Take(17): %v under 17, %v under 1", ring.Find(17), ring.Find(1))
	}
	if ring.Take(1) != &v || ring.Len() != 0 {
		t.Errorf("Take(1) did not find the value, %d are left", ring.Len())
	}
}

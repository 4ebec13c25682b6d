package peer

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestRoomInLine has three wait: the large one that came first is not passed by the
// small ones, though there would be room for them, and who gives up makes way.
func TestRoomInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{most: 10}
		if !r.try(8) {
			t.Fatal("try(8) of 10 = false")
		}
		var got []int64
		wait := func(ctx context.Context, n int64) chan bool {
			done := make(chan bool, 1)
			go func() {
				ok := r.wait(ctx, nil, n)
				if ok {
					got = append(got, n)
				}
				done <- ok
			}()
			synctest.Wait()
			return done
		}
		ctx, giveUp := context.WithCancel(t.Context())
		large, small, last := wait(ctx, 7), wait(t.Context(), 2), wait(t.Context(), 9)
		if r.try(1) || len(got) > 0 {
			t.Fatalf("try(1) while others wait = true, or %v got room", got)
		}
		giveUp()
		synctest.Wait()
		if ok := <-large; ok {
			t.Error("wait of an ended context = true")
		}
		if ok := <-small; !ok {
			t.Error("wait(2) behind one that gave up = false")
		}
		r.give(8)
		synctest.Wait()
		if len(got) != 1 {
			t.Errorf("%v got room, and 9 do not fit beside 2", got)
		}
		r.give(2)
		if ok := <-last; !ok || r.used.Load() != 9 || r.waiting.Load() != 0 {
			t.Errorf("wait(9) = %t with %d used, %d waiting; want true, 9, 0", ok, r.used.Load(), r.waiting.Load())
		}
	})
}

// TestRoomEnds has the connection end while somebody waits.
func TestRoomEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{most: 1}
		r.try(1)
		over := make(chan struct{})
		done := make(chan bool)
		go func() { done <- r.wait(t.Context(), over, 1) }()
		synctest.Wait()
		close(over)
		if <-done {
			t.Error("wait = true after the end")
		}
		r.give(1)
		if r.used.Load() != 0 || r.waiting.Load() != 0 || !r.try(1) {
			t.Errorf("%d used, %d waiting after all gave back", r.used.Load(), r.waiting.Load())
		}
	})
}

// TestRoomRace has many take, wait, give up and give back at once: there is never
// more given than there is, nobody is forgotten, and at the end all is back.
func TestRoomRace(t *testing.T) {
	const most = 100
	r := &room{most: most}
	var held atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 2000 {
				n := 1 + rand.Int64N(most)
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				if r.try(n) || r.wait(ctx, nil, n) {
					if now := held.Add(n); now > most {
						t.Errorf("%d held of %d", now, most)
					}
					held.Add(-n)
					r.give(n)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if r.used.Load() != 0 || r.waiting.Load() != 0 || r.line.Len() != 0 {
		t.Errorf("at the end %d used, %d waiting, %d in line", r.used.Load(), r.waiting.Load(), r.line.Len())
	}
}

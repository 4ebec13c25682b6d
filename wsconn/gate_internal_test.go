package wsconn

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	g := newGate()
	if !g.try() || g.try() || g.ask() {
		t.Error("a shut gate was shut again")
	}
	g.unlock() // hands it on to whoever asked
	select {
	case <-g.wake:
	default:
		t.Error("unlock handed the gate to nobody, and somebody had asked")
	}
	if g.try() {
		t.Error("a gate that was handed on is open")
	}
	g.unlock() // nobody waits
	if !g.try() || g.try() {
		t.Error("a gate that nobody took is not open, once")
	}
	g.unlock()
	g.lock()
	g.unlock()
}

// Who waits comes before who comes later: a writer in a loop keeps nobody out.
func TestGateIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.lock()
		go g.lock()
		synctest.Wait()
		g.unlock()
		if g.try() {
			t.Error("who came later has the gate")
		}
	})
}

// Many lock, ask and give up. One is inside at a time; with a lost wake-up the bubble would never end.
func TestGateWithMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		inside, entered := 0, 0 // the race detector looks at these too
		visit := func(stay time.Duration) {
			if inside++; inside != 1 {
				t.Errorf("%d inside, want 1", inside)
			}
			entered++
			time.Sleep(stay)
			inside--
			g.unlock()
		}
		wait := func(ctx context.Context) bool { // as takeTurn does
			if g.try() || g.ask() {
				return true
			}
			select {
			case <-g.wake:
				return true
			case <-ctx.Done():
				return false
			}
		}
		const rounds = 200
		var wg sync.WaitGroup
		var mu sync.Mutex
		want, gaveUp := 0, 0
		count := func(came bool) {
			mu.Lock()
			defer mu.Unlock()
			if came {
				want++
			} else {
				gaveUp++
			}
		}
		for i := range 8 {
			wg.Go(func() {
				for j := range rounds {
					g.lock()
					visit(time.Duration((i+j)%3) * time.Microsecond)
					count(true)
				}
			})
			wg.Go(func() {
				for j := range rounds {
					// Shorter than the wait for all the others, mostly.
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*j)%40)*time.Microsecond)
					came := wait(ctx)
					cancel()
					if came {
						visit(0)
					}
					count(came)
				}
			})
			wg.Go(func() {
				for range rounds {
					came := g.try()
					if came {
						visit(time.Microsecond)
					}
					count(came)
					time.Sleep(time.Microsecond)
				}
			})
		}
		wg.Wait()
		if entered != want || gaveUp == 0 || !g.try() {
			t.Errorf("entered %d times, want %d; %d gave up, want some; the gate must be open", entered, want, gaveUp)
		}
	})
}

// Who gives up takes no wake-up along.
func TestGateGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.lock()
		var others sync.WaitGroup
		for range 2 {
			others.Go(func() { g.lock(); g.unlock() })
		}
		synctest.Wait()
		g.ask() // and now it gives up waiting
		g.unlock()
		others.Wait()
		if !g.try() {
			t.Error("the gate is shut, and nobody is left")
		}
	})
}

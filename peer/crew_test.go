package peer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// TestCrewStartsAll: handlers that wait keep no other request from its start,
// however they are mixed with those that do not.
func TestCrewStartsAll(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, share := range []int{1, 50, 90, 100} { // of those that wait, in percent
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const total = 1000
				random := rand.New(rand.NewPCG(seed, uint64(share)))
				leave := make(chan struct{})
				var started, quick atomic.Int64
				opts := methods{
					"quick": func(context.Context, *peer.Request) (any, error) { quick.Add(1); return nil, nil },
					"wait": func(context.Context, *peer.Request) (any, error) {
						started.Add(1)
						<-leave
						return nil, nil
					},
				}.options()
				opts.Limits.InFlight = total
				raw, conn := peertest.Against(t, opts)
				waiting := int64(0)
				for id := range total {
					method := "quick"
					if random.IntN(100) < share {
						method = "wait"
						waiting++
					}
					raw.Send(call(id, method))
					if random.IntN(50) == 0 {
						synctest.Wait()
					}
				}
				synctest.Wait()
				if s, q := started.Load(), quick.Load(); s != waiting || q != total-waiting {
					t.Errorf("%d of %d handlers that wait and %d of %d others started", s, waiting, q, total-waiting)
				}
				if n := len(raw.Waiting()); int64(n) != total-waiting {
					t.Errorf("%d answers, want those of the %d that do not wait", n, total-waiting)
				}
				close(leave)
				synctest.Wait()
				if n := len(raw.Waiting()); int64(n) != waiting || conn.Stats().InFlight != 0 {
					t.Errorf("%d answers and %d in flight at the end, want %d and 0", n, conn.Stats().InFlight, waiting)
				}
				// All but the reader leave a connection with nothing to do.
				time.Sleep(5 * time.Second)
				if n := stacksOf("duet/peer.(*Conn).work"); n != 0 {
					t.Errorf("%d goroutines wait for work that does not come", n)
				}
			})
		})
	}
}

// stacksOf is the number of goroutines with that function in their stacks.
func stacksOf(function string) (n int) {
	buf := make([]byte, 16<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, function) {
			n++
		}
	}
	return n
}

// TestCrewIsFew: thousands of quick calls, one after the other, are run by a few
// goroutines, and when there was nothing to do for a while none is left but the
// readers.
func TestCrewIsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		most := 0
		left, _ := peertest.Pair(t, nil, methods{"m": func(context.Context, *peer.Request) (any, error) {
			most = max(most, runtime.NumGoroutine()-before)
			return nil, nil
		}}.options())
		for i := range 3000 {
			if err := left.Call(t.Context(), "m", nil, nil); err != nil {
				t.Fatalf("Call(%d) = %v", i, err)
			}
		}
		// Two readers, two writers, and one that works while another comes.
		if most > 8 {
			t.Errorf("%d goroutines ran calls that came one after the other", most)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := stacksOf("duet/peer.(*Conn)"); n != 2 {
			t.Errorf("%d goroutines of two idle ends, want the two readers", n)
		}
		if err := left.Call(t.Context(), "m", nil, nil); err != nil {
			t.Errorf("Call after a rest = %v", err)
		}
	})
}

// TestCrewGoexit: a handler that ends its goroutine takes no request that waits
// with it.
func TestCrewGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		left, right := peertest.Pair(t, nil, methods{
			"m":    func(context.Context, *peer.Request) (any, error) { return ran.Add(1), nil },
			"exit": func(context.Context, *peer.Request) (any, error) { runtime.Goexit(); return nil, nil },
		}.options())
		var callers sync.WaitGroup
		failed := atomic.Int64{}
		for i := range 200 {
			callers.Go(func() {
				method := "m"
				if i%2 == 0 {
					method = "exit"
				}
				var refused *peer.Error
				if err := left.Call(t.Context(), method, nil, nil); errors.As(err, &refused) {
					failed.Add(1)
				} else if err != nil {
					t.Errorf("Call = %v", err)
				}
			})
		}
		callers.Wait()
		if ran.Load() != 100 || failed.Load() != 100 {
			t.Errorf("%d ran and %d failed, want 100 and 100", ran.Load(), failed.Load())
		}
		if s := right.Stats(); s.InFlight != 0 {
			t.Errorf("InFlight = %d in the end", s.InFlight)
		}
	})
}

// TestCrewCloses: Close with requests that run and requests that are ready: those
// that have not started do not, and Done closes once the others return.
func TestCrewCloses(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			leave := make(chan struct{})
			var started, ended atomic.Int64
			raw, conn := peertest.Against(t, methods{"wait": func(ctx context.Context, _ *peer.Request) (any, error) {
				started.Add(1)
				<-leave
				if ctx.Err() == nil {
					t.Error("a handler's context has not ended with the connection")
				}
				ended.Add(1)
				return nil, nil
			}}.options())
			for id := range 100 {
				raw.Send(call(id, "wait"))
			}
			_ = conn.Close() // while some are on their way
			synctest.Wait()
			if isDone(conn) != (started.Load() == 0) {
				t.Errorf("Done is closed: %t, with %d handlers that run", isDone(conn), started.Load())
			}
			close(leave)
			synctest.Wait()
			if !isDone(conn) || started.Load() != ended.Load() {
				t.Errorf("Done is closed: %t, %d handlers started and %d returned", isDone(conn), started.Load(), ended.Load())
			}
			if s := conn.Stats(); s.InFlight != 0 {
				t.Errorf("InFlight = %d in the end", s.InFlight)
			}
		})
	}
}

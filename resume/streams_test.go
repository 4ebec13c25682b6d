package resume_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/stream"
)

// Streams and feeds over a Client, with random cuts, gaps longer than Park, and ends of the
// accepting connection; plain and resuming. Items never twice, never a hole; nothing hangs.
func TestStreamsOverCuts(t *testing.T) {
	for seed := range uint64(20) {
		for _, plain := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 7))
				var reg peer.Registry
				type P struct{ N int }
				run := stream.Method[P, int, string]("run")
				feed := stream.Feed[P, int, int]("feed")
				run.Handle(&reg, func(ctx context.Context, in P, send func(int) error) (string, error) {
					for i := range in.N {
						if err := send(i + 1); err != nil {
							return "", err
						}
						time.Sleep(time.Millisecond)
					}
					return "done", nil
				})
				var bad sync.Map
				feed.Handle(&reg, func(ctx context.Context, in P, items iter.Seq2[int, error]) (int, error) {
					n := 0
					for v, err := range items {
						if err != nil {
							return n, err
						}
						if n++; v != n {
							bad.Store(fmt.Sprint("fed ", v, " as ", n), true)
						}
					}
					return n, nil
				})
				w := newWorld(t, &resume.Options{Park: 500 * time.Millisecond}, &peer.Options{Handler: &reg})
				w.plain = plain
				c := w.client(nil, nil)
				var wg sync.WaitGroup
				stop := make(chan struct{})
				var cutter sync.WaitGroup
				cutter.Go(func() {
					for {
						select {
						case <-stop:
							w.setDown(false)
							return
						case <-time.After(time.Duration(1+rnd.IntN(300)) * time.Millisecond):
						}
						s, n := w.count()
						if s == 0 || n == 0 {
							continue
						}
						switch rnd.IntN(5) {
						case 0, 1:
							w.cut()
						case 2:
							w.setDown(true)
							w.cut()
							time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
							w.setDown(false)
						case 3:
							_ = w.conn().Close()
						case 4:
							w.all()[s-1].other.cut()
						}
					}
				})
				for i := range 4 {
					wg.Go(func() {
						for range 6 {
							var opts []stream.Option
							if i%2 == 0 {
								opts = append(opts, stream.Calling(peer.Idempotent()))
							}
							s := run.Call(t.Context(), c, P{200}, opts...)
							n := 0
							var err error
							for v, e := range s.All() {
								if err = e; e != nil {
									break
								}
								if n++; v != n {
									t.Errorf("seed %d plain %v: item %d as %d", seed, plain, v, n)
								}
							}
							if err == nil && n != 200 {
								t.Errorf("seed %d plain %v: %d items and no error", seed, plain, n)
							}
							f := feed.Call(t.Context(), c, P{}, opts...)
							sent := 0
							for j := range 100 {
								if f.Send(j+1) != nil {
									break
								}
								sent++
							}
							got, ferr := f.Result()
							if ferr == nil && got != sent {
								t.Errorf("seed %d plain %v: fed %d, arrived %d", seed, plain, sent, got)
							}
						}
					})
				}
				wg.Wait()
				close(stop)
				cutter.Wait()
				bad.Range(func(k, _ any) bool { t.Error(k); return true })
				w.end(c)
			})
		}
	}
}

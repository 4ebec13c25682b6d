package peer_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// A context that had ended looked alive again for whoever looked while somebody
// asked for its Done the first time, and a request made with it went out.
func TestEndedStaysEnded(t *testing.T) {
	contexts := make(chan context.Context, 1)
	left, right := peertest.Pair(t, nil, &peer.Options{Handler: peer.HandlerFunc(
		func(ctx context.Context, req *peer.Request) (any, error) {
			if req.ID.IsZero() {
				return nil, nil
			}
			contexts <- ctx
			return 1, nil
		})})
	for range 5000 {
		if err := left.Call(t.Context(), "m", nil, nil); err != nil {
			t.Fatal(err)
		}
		ctx := <-contexts
		for ctx.Err() == nil {
			runtime.Gosched() // the handler is about to have returned
		}
		var ready atomic.Int32
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				for ready.Add(1); ready.Load() < 3; {
					runtime.Gosched()
				}
				switch i {
				case 0:
					select {
					case <-ctx.Done():
					default:
						t.Error("Done() is open")
					}
				case 1:
					if err := ctx.Err(); err == nil || context.Cause(ctx) == nil {
						t.Errorf("Err() = %v, Cause() = %v", err, context.Cause(ctx))
					}
				case 2:
					if right.Notify(ctx, "n", nil) == nil {
						t.Error("Notify() with an ended context = nil")
					}
				}
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
	}
}

// What ended a context first is its cause, whenever somebody asks: a cancellation
// before the end of the connection, and the end of the connection before the return
// of the handler.
func TestFirstEndIsTheCause(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			contexts := make(chan context.Context, 1)
			left, right := peertest.Pair(t, nil, &peer.Options{Handler: peer.HandlerFunc(
				func(ctx context.Context, req *peer.Request) (any, error) {
					contexts <- ctx
					time.Sleep(time.Second)
					return 1, nil
				})})
			call, cancel := context.WithCancel(t.Context())
			defer cancel()
			go left.Call(call, "m", nil, nil)
			ctx := <-contexts
			if cancelled {
				cancel()
				synctest.Wait()
			}
			right.Close()
			time.Sleep(2 * time.Second)
			var cause *peer.CancelError
			if got := errors.As(context.Cause(ctx), &cause); got != cancelled || !cancelled && !errors.Is(context.Cause(ctx), peer.ErrClosed) {
				t.Errorf("cancelled %t: Cause() = %v", cancelled, context.Cause(ctx))
			}
		})
	}
}

package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// window is how many notifications may be on their way, whatever queues a
	// system has: a rate that is a growing queue is none. It is below what duet
	// queues by default.
	window = 6 << 10

	// clip is how many a sender sends between two looks at the clock and the
	// window.
	clip = 32

	// breath is how long a sender waits for room in the window.
	breath = 100 * time.Microsecond
)

// notify is senders, of notifications or items, that send as fast as the other end handles.
type notify struct {
	pair  Pair
	shots []*shot
	sent  uint64
}

func newNotify(m *magazine, senders int) *notify {
	n := &notify{pair: m.pair, shots: make([]*shot, senders)}
	for i := range n.shots {
		n.shots[i] = m.shot(i)
	}
	return n
}

// drive sends for d and returns when the other end has handled everything.
func (n *notify) drive(ctx context.Context, d time.Duration) error {
	var sent atomic.Uint64
	before := n.pair.Handled()
	group, sending := errgroup.WithContext(ctx)
	start := time.Now()
	for _, shot := range n.shots {
		group.Go(func() error {
			ctx, cancel := context.WithCancel(sending)
			defer cancel()
			for first := true; first || time.Since(start) < d; first = false {
				if err := wait(ctx, func() bool { return sent.Load()-(n.pair.Handled()-before) <= window }); err != nil {
					return err
				}
				// Counted before they leave, so that none is handled before it counts.
				sent.Add(clip)
				for range clip {
					if err := shot.fire(ctx); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	n.sent = sent.Load()
	if err := wait(ctx, func() bool { return n.pair.Handled()-before >= n.sent }); err != nil {
		return fmt.Errorf("%d of %d notifications were handled: %w", n.pair.Handled()-before, n.sent, err)
	}
	if handled := n.pair.Handled() - before; handled > n.sent {
		return fmt.Errorf("%d notifications were handled, and %d sent", handled, n.sent)
	}
	return nil
}

// wait returns when done says so, or with the cause of ctx's end.
func wait(ctx context.Context, done func() bool) error {
	for !done() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		time.Sleep(breath)
	}
	return nil
}

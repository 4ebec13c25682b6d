package load

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// closed is a loop in which every worker waits for the answer to its call before
// it makes the next one.
type closed struct {
	shots []*shot
	took  [][]time.Duration // by worker
}

// newClosed makes the shots of all workers before anything is measured.
func newClosed(m *magazine, workers int) *closed {
	c := &closed{shots: make([]*shot, workers), took: make([][]time.Duration, workers)}
	for i := range c.shots {
		c.shots[i] = m.shot(i)
	}
	return c
}

// makeRoom empties the records, and makes room in each for factor times what
// it has, so that they do not grow while memory is measured.
func (c *closed) makeRoom(factor float64) {
	for i, took := range c.took {
		c.took[i] = make([]time.Duration, 0, int(float64(len(took))*factor)+64)
	}
}

// drive calls for d, or as often as calls says where that is not 0, and waits for
// the last answers.
func (c *closed) drive(ctx context.Context, d time.Duration, calls int) error {
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i := range c.shots {
		// Each has its share of calls, since a common counter would be measured.
		mine := share(calls, len(c.shots), i)
		if calls > 0 && mine == 0 {
			continue
		}
		group.Go(func() error { return c.work(ctx, i, start, d, mine) })
	}
	return group.Wait()
}

// work is one worker. Its calls carry a context of its own that can be cancelled,
// as users' calls do: that costs a system more than context.Background.
func (c *closed) work(ctx context.Context, i int, start time.Time, d time.Duration, calls int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shot, took := c.shots[i], c.took[i]
	defer func() { c.took[i] = took }()
	// One look at the clock per call: where one ends the next begins. Every worker
	// calls once, however late it got to run.
	last := time.Since(start)
	for n := 0; n < calls || calls == 0 && (n == 0 || last < d); n++ {
		if err := shot.fire(ctx); err != nil {
			return err
		}
		now := time.Since(start)
		took = append(took, now-last)
		last = now
	}
	return nil
}

// all returns the records of all workers.
func (c *closed) all() []time.Duration {
	var n int
	for _, took := range c.took {
		n += len(took)
	}
	all := make([]time.Duration, 0, n)
	for _, took := range c.took {
		all = append(all, took...)
	}
	return all
}

// share is the part of total that worker i of n has.
func share(total, n, i int) int {
	mine := total / n
	if i < total%n {
		mine++
	}
	return mine
}

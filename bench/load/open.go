package load

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxWorkers bounds the calls at once.
const maxWorkers = 4096

// open is a loop in which calls are due at a fixed rate, however long the others
// take. Where as many are in flight as may be, those that are due wait in line. The
// time of a call counts from when it was due: where the system stalls, the calls
// that could not begin show it.
type open struct {
	magazine *magazine
	rate     float64
	workers  int    // at most
	wait     func() // for the next look at what is due
	shots    []*shot

	took []time.Duration // by arrival

	mu    sync.Mutex
	due   int        // arrivals so far
	begun int        // of these
	over  bool       // no more will come
	idle  []chan int // of workers, the last to finish on top: what it works with is still near
}

// at is when arrival i is due, counted from the start.
func (o *open) at(i int) time.Duration {
	return time.Duration(float64(i) / o.rate * float64(time.Second))
}

// makeRoom makes the records for a drive of d.
func (o *open) makeRoom(d time.Duration) {
	o.took = make([]time.Duration, max(1, int(o.rate*d.Seconds())))
	o.due, o.begun, o.over, o.idle = 0, 0, false, nil
}

// drive is the generator. It returns when the last call is answered.
func (o *open) drive(ctx context.Context) error {
	group, working := errgroup.WithContext(ctx)
	start := time.Now()
	due, workers := 0, 0
	for due < len(o.took) && working.Err() == nil {
		for now := time.Since(start); due < len(o.took) && o.at(due) <= now; {
			due++
		}
		o.mu.Lock()
		o.due = due
		for ; o.begun < o.due; o.begun++ {
			if last := len(o.idle) - 1; last >= 0 {
				o.idle[last] <- o.begun
				o.idle = o.idle[:last]
				continue
			}
			if workers == o.workers {
				break // whoever is done first takes it
			}
			shot, first := o.shot(workers), o.begun
			workers++
			group.Go(func() error { return o.work(working, shot, start, first) })
		}
		o.mu.Unlock()
		o.wait()
	}
	o.mu.Lock()
	o.over = true
	for _, wake := range o.idle {
		close(wake)
	}
	o.mu.Unlock()
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx) // no call may have seen its end
}

// work is one worker: it makes the call of arrival i, and then others.
func (o *open) work(ctx context.Context, shot *shot, start time.Time, i int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake := make(chan int, 1)
	for ok := true; ok; i, ok = o.next(wake) {
		if err := shot.fire(ctx); err != nil {
			return err
		}
		o.took[i] = time.Since(start) - o.at(i)
	}
	return nil
}

// next returns the next arrival for a worker, which waits for it on wake. It reports
// false when there are no more.
func (o *open) next(wake chan int) (i int, ok bool) {
	o.mu.Lock()
	if o.begun < o.due {
		i = o.begun
		o.begun++
		o.mu.Unlock()
		return i, true
	}
	if o.over {
		o.mu.Unlock()
		return 0, false
	}
	o.idle = append(o.idle, wake)
	o.mu.Unlock()
	i, ok = <-wake
	return i, ok
}

// shot returns the shot of a worker, made when it is first wanted.
func (o *open) shot(worker int) *shot {
	if worker == len(o.shots) {
		o.shots = append(o.shots, o.magazine.shot(worker))
	}
	return o.shots[worker]
}

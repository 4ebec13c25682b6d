package load

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxWorkers bounds the calls at once.
const maxWorkers = 4096

// open is a loop in which calls begin at a fixed rate, however long the others
// take. The time of a call counts from when it was to begin: where the system
// stalls, the calls that could not begin show it.
type open struct {
	magazine *magazine
	rate     float64
	workers  int    // at most
	wait     func() // for the next look at what is due
	shots    []*shot

	took   []time.Duration // by arrival; unanswered where there was no answer
	missed int             // arrivals for which no worker was free

	mu   sync.Mutex
	free []chan int // of workers that wait for an arrival, the last to finish on top: what it works with is still near
}

const unanswered = time.Duration(-1)

// at is when arrival i is to begin, counted from the start.
func (o *open) at(i int) time.Duration {
	return time.Duration(float64(i) / o.rate * float64(time.Second))
}

// makeRoom empties the records, for a drive of d.
func (o *open) makeRoom(d time.Duration) {
	o.missed = 0
	o.took = make([]time.Duration, max(1, int(o.rate*d.Seconds())))
	for i := range o.took {
		o.took[i] = unanswered
	}
}

// drive is the generator. It makes all calls there is room for, and waits for the last answers.
func (o *open) drive(ctx context.Context) error {
	group, working := errgroup.WithContext(ctx)
	start := time.Now()
	var all []chan int
	for next := 0; next < len(o.took) && working.Err() == nil; {
		for now := time.Since(start); next < len(o.took) && o.at(next) <= now; next++ {
			// Waiting for a worker would hold up the arrivals behind this one, and
			// hide the stall: a new worker takes it, or nobody.
			due := o.pop()
			if due == nil {
				if len(all) == o.workers {
					o.missed++
					continue
				}
				due = make(chan int, 1)
				shot := o.shot(len(all))
				all = append(all, due)
				group.Go(func() error { return o.work(working, shot, start, due) })
			}
			due <- next
		}
		o.wait()
	}
	for _, due := range all {
		close(due)
	}
	err := group.Wait()
	o.free = nil
	if err != nil {
		return err
	}
	return context.Cause(ctx) // no call may have seen its end
}

// work is one worker: it makes the calls that come by due.
func (o *open) work(ctx context.Context, shot *shot, start time.Time, due chan int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range due {
		if err := shot.fire(ctx); err != nil {
			return err
		}
		o.took[i] = time.Since(start) - o.at(i)
		o.push(due)
	}
	return nil
}

func (o *open) push(due chan int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free = append(o.free, due)
}

func (o *open) pop() chan int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.free) == 0 {
		return nil
	}
	last := len(o.free) - 1
	due := o.free[last]
	o.free = o.free[:last]
	return due
}

// shot returns the shot of a worker, made when it is first wanted.
func (o *open) shot(worker int) *shot {
	if worker == len(o.shots) {
		o.shots = append(o.shots, o.magazine.shot(worker))
	}
	return o.shots[worker]
}

// all returns the records of the calls that were answered.
func (o *open) all() []time.Duration {
	all := make([]time.Duration, 0, len(o.took))
	for _, took := range o.took {
		if took != unanswered {
			all = append(all, took)
		}
	}
	return all
}

package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

const (
	// warmUp is how long a load runs before it is measured, or as long as it is
	// measured where that is shorter.
	warmUp = 300 * time.Millisecond

	// grace is how long a load may go on after its time, and allowance how long
	// one that has no time may take. An answer that never comes ends so.
	grace     = 20 * time.Second
	allowance = 5 * time.Minute
)

// errStuck is the cause of the end of a load that took too long.
var errStuck = errors.New("an answer is missing, or far too late")

// Run puts l on p, first for a warm-up, then for d. A load with Calls takes as
// long as those take. w is what p was opened on; nil leaves the sockets
// uncounted. One Run at a time in a process: the processor and the memory are
// counted for all of it.
//
// It stops at the first call that fails, or is answered wrong (ErrEcho). The
// Result then has the text of the error, too.
func Run(ctx context.Context, p Pair, w *Wire, l Load, d time.Duration) (Result, error) {
	r := Result{Load: l}
	if err := run(ctx, p, w, d, &r); err != nil {
		err = fmt.Errorf("load: %q: %w", l.Name, err)
		r.Error = err.Error()
		return r, err
	}
	return r, nil
}

// run is Run without the name of the load in its errors.
func run(ctx context.Context, p Pair, w *Wire, d time.Duration, r *Result) error {
	l := r.Load
	if err := l.validate(); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("the time %v is not positive", d)
	}
	m, err := newMagazine(p, l)
	if err != nil {
		return err
	}
	// An answer that never comes ends the run, not the patience of who waits.
	limit := min(d, warmUp) + d + grace
	if l.Calls > 0 {
		limit = allowance
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errStuck)
	defer cancel()

	finish := func() error { return nil }
	if l.OpenCall {
		finish = stay(ctx, p)
	}
	switch {
	case l.oneWay():
		err = runNotify(ctx, m, w, d, r)
	case l.open():
		err = runOpen(ctx, m, w, d, r)
	default:
		err = runClosed(ctx, m, w, d, r)
	}
	if stayed := finish(); err == nil {
		err = stayed
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// runClosed measures a closed loop. Its warm-up tells how many records to make
// room for: they must not grow, and be counted, while it is measured.
func runClosed(ctx context.Context, m *magazine, w *Wire, d time.Duration, r *Result) error {
	c := newClosed(m, r.Load.InFlight)
	warm := min(d, warmUp)
	if err := c.drive(ctx, warm, 0); err != nil {
		return err
	}
	if r.Load.Calls > 0 {
		for i := range c.took {
			c.took[i] = make([]time.Duration, 0, share(r.Load.Calls, len(c.took), i))
		}
	} else {
		c.makeRoom(2 * float64(d) / float64(warm))
	}
	// Everything of the loop's own is allocated here; what the heap grows by from
	// now on is the system's.
	var heap int64
	if r.Load.OpenCall {
		heap = live()
	}
	meter := begin(w)
	if err := c.drive(ctx, d, r.Load.Calls); err != nil {
		return err
	}
	for _, took := range c.took {
		r.Calls += len(took)
	}
	meter.end(w, r)
	if r.Load.OpenCall {
		r.Grown = live() - heap
		runtime.KeepAlive(c) // its records were there before, too
	}
	r.setTimes(c.all())
	return nil
}

// runOpen measures an open loop. It warms up at the same rate, so that nothing is
// measured before the system has grown to it.
func runOpen(ctx context.Context, m *magazine, w *Wire, d time.Duration, r *Result) error {
	if r.Load.Share > 0 {
		// What the machine gives changes from minute to minute.
		// The first drive is to warm up.
		var rate float64
		for range 2 {
			c, start := newClosed(m, 256), time.Now()
			if err := c.drive(ctx, min(d, warmUp), 0); err != nil {
				return err
			}
			rate = float64(len(c.all())) / time.Since(start).Seconds()
		}
		r.Load.Rate = r.Load.Share * rate
	}
	o := &open{magazine: m, rate: r.Load.Rate, workers: r.Load.InFlight}
	if w == nil { // no sockets: the time may be a bubble's
		o.wait = func() { time.Sleep(pace) }
	} else {
		beat, err := startPacemaker(ctx)
		if err != nil {
			return err
		}
		defer beat.stop()
		o.wait = beat.wait
	}
	o.makeRoom(min(d, warmUp))
	if err := o.drive(ctx); err != nil {
		return err
	}
	o.makeRoom(d)
	meter := begin(w)
	if err := o.drive(ctx); err != nil {
		return err
	}
	r.Calls = len(o.took)
	meter.end(w, r)
	r.setTimes(o.took)
	return nil
}

// runNotify measures notifications, or items, from the first one's start until the other end
// has handled the last.
func runNotify(ctx context.Context, m *magazine, w *Wire, d time.Duration, r *Result) error {
	n := newNotify(m, r.Load.InFlight)
	if err := n.drive(ctx, min(d, warmUp)); err != nil {
		return err
	}
	meter := begin(w)
	if err := n.drive(ctx, d); err != nil {
		return err
	}
	r.Calls = int(n.sent)
	meter.end(w, r)
	return nil
}

// stay makes a call that stays open. The function it returns gives it up, and
// fails if it was over before.
func stay(ctx context.Context, p Pair) func() error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		var out Doc
		ended <- p.Call(ctx, &Doc{Seq: Stay}, &out)
	}()
	return func() error {
		defer cancel()
		select {
		case err := <-ended:
			if err == nil {
				err = ErrEcho // it was answered
			}
			return fmt.Errorf("the open call ended: %w", err)
		default:
		}
		cancel()
		<-ended
		return nil
	}
}

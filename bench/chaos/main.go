// Command chaos runs a server and clients, through a proxy that cuts their connections, and
// sees whether anything is lost.
//
//	go run . -duration 30s -seed 1   more than 1,000 cuts
//	go run . -duration 10m           the soak
//	go run . -resume=false           what is true without sessions
//
// Calls go both ways, with callbacks, notifications, streams, and calls that are given up.
// The last line has what came to a good end, and what did not:
//
//	lost        calls and streams that failed, notifications and items that did not arrive
//	doubled     what ran or arrived twice, or was said not to have been sent and ran
//	reordered   notifications and items that arrived after later ones
//	hung        what had not ended 20 s after the last fault
//	leaked      goroutines and sessions that outlive both ends
//
// The same seed has the same faults: connection number n of a client is cut in the same way
// after the same bytes, whatever they are. What is on its way then is not the same, since
// the time that everything takes never is.
//
// The exit status is 0 if the last five figures are 0, 1 if one is not, and 2 for wrong flags.
// With -resume=false the lost ones do not count, but failures without their state do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "chaos: %v\n(-h shows the flags)\n", err)
		return 2
	}
	if s.verbose {
		fmt.Fprintf(stderr, "plan %s, of seed %d and %d clients\n", digest(s.seed, s.clients), s.seed, s.clients)
	}
	t, err := chaos(ctx, s, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	good := t.good(s.resume)
	if s.verbose {
		for _, k := range slices.Sorted(maps.Keys(t.cuts)) {
			fmt.Fprintf(stderr, "%6d %s\n", t.cuts[k], k)
		}
		fmt.Fprintf(stderr, "%6d calls given up\n", t.cancelled.Load())
	}
	if !good || s.verbose {
		t.explain(stderr)
	}
	fmt.Fprintln(stdout, t.figures())
	if !s.resume {
		fmt.Fprintln(stdout, t.plain())
	}
	if n := t.count(); n < s.cuts {
		fmt.Fprintf(stderr, "chaos: %d cuts are fewer than the %d of -cuts\n", n, s.cuts)
		good = false
	}
	if !good {
		return 1
	}
	return 0
}

// chaos is one run.
func chaos(ctx context.Context, s settings, stderr io.Writer) (*tally, error) {
	w, err := newWorld(s)
	if err != nil {
		return nil, err
	}
	clear := newScreen(stderr, w.tally, s.duration).start()
	w.play(ctx)
	w.end()
	clear()
	w.leftovers(stderr)
	return w.tally, nil
}

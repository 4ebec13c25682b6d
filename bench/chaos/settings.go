package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// settings are the flags.
type settings struct {
	duration time.Duration // of the faults
	seed     uint64
	resume   bool
	clients  int
	cuts     int // at least
	verbose  bool
}

// parse reads the flags. Its errors are for who typed them, and name the flag.
func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.DurationVar(&s.duration, "duration", 30*time.Second, "how long things go wrong; what is open then has to come to its end")
	flags.Uint64Var(&s.seed, "seed", 1, "the same `number` has the same faults")
	flags.BoolVar(&s.resume, "resume", true, "sessions that outlive their sockets; without, calls fail, and are judged by how")
	flags.IntVar(&s.clients, "clients", 8, "how many clients there are")
	flags.IntVar(&s.cuts, "cuts", 0, "fewer cuts than that are a failure, too")
	flags.BoolVar(&s.verbose, "v", false, "tell which faults there were, and what is left of a run that left something")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stderr)
		flags.Usage()
		return s, err
	} else if err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("argument %q is not a flag", flags.Arg(0))
	case s.duration < 100*time.Millisecond || s.duration > 24*time.Hour:
		err = fmt.Errorf("-duration %v is not in 100ms to 24h", s.duration)
	case s.clients < 1 || s.clients > 1000:
		err = fmt.Errorf("-clients %d is not in 1 to 1000", s.clients)
	case s.cuts < 0:
		err = fmt.Errorf("-cuts %d is negative", s.cuts)
	}
	return s, err
}

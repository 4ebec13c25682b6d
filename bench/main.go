// Bench measures duet: calls, notifications and idle connections between two ends
// in this process, over loopback sockets.
//
//	go run ./bench                       everything, in less than a minute
//	go run ./bench -load 'raw|wss'       the loads whose names match
//	go run ./bench -rounds 5 -json FILE  medians of five rounds, and all figures in FILE
//
// Both ends share the processors and every figure is of both together. The
// exit status is 0 if every answer was right, 1 if a load failed or the run was
// interrupted, and 2 for wrong flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

func main() {
	load.Child() // does not return in the child process of an idle load
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	time    time.Duration // of one load
	rounds  int
	calls   int // beside an open one
	idle    int // connections
	steps   []step
	json    string
	profile string
}

// parse reads the flags. Its errors are for who typed them, and name the flag.
func parse(args []string, stderr io.Writer) (cfg config, err error) {
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.DurationVar(&cfg.time, "time", time.Second, "how long each load is measured, after a warm-up")
	set.IntVar(&cfg.rounds, "rounds", 1, "how often everything is measured; the table shows medians")
	set.IntVar(&cfg.calls, "calls", 1_000_000, "how many calls are made while another stays open")
	set.IntVar(&cfg.idle, "idle", 2000, "how many idle connections are held")
	names := set.String("load", "", "only the loads whose names match this `regexp`")
	set.StringVar(&cfg.json, "json", "", "write all figures to this `file`")
	set.StringVar(&cfg.profile, "cpuprofile", "", "write a CPU profile of the run to this `file`")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		set.SetOutput(stderr)
		set.Usage()
		return cfg, err
	} else if err != nil {
		return cfg, err
	}
	switch {
	case set.NArg() > 0:
		return cfg, fmt.Errorf("argument %q is not a flag", set.Arg(0))
	case cfg.time < time.Millisecond || cfg.time > time.Hour:
		return cfg, fmt.Errorf("-time %v is not in 1ms to 1h", cfg.time)
	case cfg.rounds < 1 || cfg.rounds > 1000:
		return cfg, fmt.Errorf("-rounds %d is not in 1 to 1000", cfg.rounds)
	case cfg.calls < 1 || cfg.calls > 100_000_000:
		return cfg, fmt.Errorf("-calls %d is not in 1 to 100000000", cfg.calls)
	case cfg.idle < 1 || cfg.idle > 1_000_000:
		return cfg, fmt.Errorf("-idle %d is not in 1 to 1000000", cfg.idle)
	}
	match, err := regexp.Compile(*names)
	if err != nil {
		return cfg, fmt.Errorf("-load: %w", err)
	}
	all := steps(cfg)
	for _, s := range all {
		if match.MatchString(s.Name) {
			cfg.steps = append(cfg.steps, s)
		}
	}
	if len(cfg.steps) == 0 {
		var list strings.Builder
		for _, s := range all {
			list.WriteString("\n  " + s.Name)
		}
		return cfg, fmt.Errorf("-load %q matches none of these:%s", *names, list.String())
	}
	return cfg, nil
}

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n(-h shows the flags)\n", err)
		return 2
	}
	if err := measure(ctx, cfg, args, stdout, stderr); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
			if cfg.json != "" {
				err = fmt.Errorf("interrupted, %s is not written", cfg.json)
			}
		}
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

// measure plays all rounds and prints what there is of them, also when it fails
// on the way.
func measure(ctx context.Context, cfg config, args []string, stdout, stderr io.Writer) (err error) {
	// Files are made first: a minute of measuring is too late to find that they
	// cannot be.
	report, err := newReport(cfg.json, args)
	if err != nil {
		return err
	}
	defer report.discard()
	if cfg.profile != "" {
		stop, err := profile(cfg.profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	fmt.Fprintf(stdout, "duet, both ends in one process: %s, %s/%s, GOMAXPROCS %d; %v a load, %d round%s\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), cfg.time, cfg.rounds, plural(cfg.rounds))

	b := &bench{config: cfg, system: load.Duet(), screen: newScreen(stderr, cfg.rounds*len(cfg.steps))}
	err = b.play(ctx)
	b.screen.clear()
	if printErr := b.print(stdout); printErr != nil {
		return errors.Join(err, printErr)
	}
	if err != nil {
		return err
	}
	return report.write(b)
}

// profile begins a CPU profile; stop ends it and closes its file.
func profile(name string) (stop func() error, err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("-cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("-cpuprofile: %w", err)
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// Command peers measures duet beside other JSON-RPC libraries, gRPC, HTTP and bare
// sockets, and judges it by what must be reached.
//
// Each system has a child process of its own, with both ends in it; the rounds of
// what is compared are interleaved; figures are medians. Results go to peers.json,
// throughput.svg and latency.svg in the folder of -out.
//
// The exit status is 0 if everything that was measured reached what it must, 1 if
// something did not, and 2 for wrong usage or a system that failed or answered
// wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

const (
	exitMissed = 1
	exitFailed = 2
)

func main() {
	load.Child()
	child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the flags.
type settings struct {
	rounds       int
	time         time.Duration
	system, load *regexp.Regexp
	short        bool
	out, from    string
	command      string // what was asked for
}

func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.rounds, "rounds", 5, "how often everything is measured")
	flags.DurationVar(&s.time, "time", 500*time.Millisecond, "how long each load is measured in each round, after a warm-up")
	flags.BoolVar(&s.short, "short", false, "everything once, for a few milliseconds, without verdicts: whether all systems work")
	flags.StringVar(&s.out, "out", "", "`folder` for peers.json and the pictures (default: that of the -from file, or ../results; nothing is written where -short, -load, -system, -rounds or -time is set)")
	flags.StringVar(&s.from, "from", "", "draw and judge the peers.json of an earlier run, measure nothing")
	match := func(to **regexp.Regexp) func(string) error {
		return func(text string) (err error) {
			*to, err = regexp.Compile(text)
			return err
		}
	}
	flags.Func("system", "`regexp` of the systems to measure, by the names in the tables", match(&s.system))
	flags.Func("load", "`regexp` of the loads to measure, such as 'typed-64B-(16|256)$', 'notify', 'open' or 'idle'", match(&s.load))
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	set := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if full := !set["short"] && !set["load"] && !set["system"] && !set["rounds"] && !set["time"]; s.out == "" && full {
		s.out = filepath.Join("..", "results") // less, or what another run measured, must not take the place of it
		if s.from != "" {
			s.out = filepath.Dir(s.from)
		}
	}
	s.command = command(args)
	if s.short {
		if !set["rounds"] {
			s.rounds = 1
		}
		if !set["time"] {
			s.time = 5 * time.Millisecond
		}
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("argument %q: only flags are taken", flags.Arg(0))
	case s.rounds < 1 || s.rounds > 100:
		err = fmt.Errorf("-rounds %d is not in 1 to 100", s.rounds)
	case s.time < time.Millisecond || s.time > time.Minute:
		err = fmt.Errorf("-time %v is not in 1ms to 1m", s.time)
	case s.from != "" && (set["rounds"] || set["time"] || s.short):
		err = errors.New("-from measures nothing: it goes without -rounds, -time and -short")
	}
	if err != nil {
		fmt.Fprintln(stderr, "peers:", err)
	}
	return s, err
}

// command is the command that measures what args ask for. Where that is written is
// nobody else's concern.
func command(args []string) string {
	text := "go run ."
	for i := 0; i < len(args); i++ {
		switch name, _, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "="); {
		case name != "out":
			text += " " + args[i]
		case !whole:
			i++ // the folder
		}
	}
	return text
}

func run(ctx context.Context, args []string, stdout io.Writer, stderr *os.File) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitFailed
	}
	groups := choose(plan(s.short), s.system, s.load)
	if len(groups) == 0 {
		systems, loads := allNames(plan(s.short))
		fmt.Fprintf(stderr, "peers: nothing matches -system and -load.\nSystems: %s\nLoads: %s\n",
			strings.Join(systems, "; "), strings.Join(loads, "; "))
		return exitFailed
	}
	r, err := s.measure(ctx, groups, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return s.finish(r, groups, stdout, stderr)
}

// measure measures, or reads what an earlier run did.
func (s settings) measure(ctx context.Context, groups []group, stderr *os.File) (*report, error) {
	var r *report
	if s.from != "" {
		var err error
		if r, err = readReport(s.from); err != nil {
			return nil, err
		}
	}
	if s.out != "" {
		if err := writable(s.out); err != nil { // now, and not after ten minutes
			return nil, fmt.Errorf("peers: -out: %w", err)
		}
	}
	if r != nil {
		return r, nil
	}
	r = &report{
		Environment: here(),
		Command:     s.command,
		Date:        time.Now().UTC().Truncate(time.Second),
		Rounds:      s.rounds,
		Time:        s.time,
		Short:       s.short,
	}
	p := newProgress(stderr, groups, s.rounds, s.time)
	b := &bench{rounds: s.rounds, time: s.time, progress: p, report: r}
	b.run(ctx, groups)
	p.end()
	if ctx.Err() != nil {
		return nil, errors.New("peers: interrupted, nothing was written")
	}
	return r, nil
}

// writable makes the folder and sees whether a file can be made in it.
func writable(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "peers.*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// finish writes, draws, prints and judges.
func (s settings) finish(r *report, groups []group, stdout io.Writer, stderr io.Writer) int {
	failed := len(r.Failed) > 0
	keep := func(err error) {
		if err != nil {
			failed = true
			fmt.Fprintln(stderr, "peers:", err)
		}
	}
	if s.from == "" && s.out != "" {
		keep(r.write(filepath.Join(s.out, "peers.json")))
	}
	if s.out != "" {
		keep(pictures(r, s.out))
	}
	fmt.Fprintf(stdout, "%s, %d cores, %s, %s/%s, %s\n", r.Environment.CPU, r.Environment.Cores,
		r.Environment.Go, r.Environment.OS, r.Environment.Arch, r.Date.Format(time.DateOnly))
	fmt.Fprintf(stdout, "medians, rounds interleaved: %d of %v; both ends in one process; duet: how many times its rate is the row's\n", r.Rounds, r.Time)
	printTables(stdout, groups, r)
	missed := 0
	if r.Short {
		fmt.Fprintln(stdout, "\nnothing is judged: this was a short run")
	} else {
		missed = printVerdicts(stdout, judge(verdicts(), r, groups))
	}
	for _, text := range r.Failed {
		fmt.Fprintln(stderr, "peers: failed:", text)
	}
	switch {
	case failed:
		return exitFailed
	case missed > 0:
		fmt.Fprintf(stderr, "peers: %d of the figures that must be reached are missed\n", missed)
		return exitMissed
	}
	return 0
}

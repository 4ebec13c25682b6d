// Lsp plays a session between an editor and a language server, two peers that call
// each other over one WebSocket by the rules of the Language Server Protocol 3.17,
// and shows what the editor sees of it.
//
//	go run ./examples/lsp               all of it, in one process
//	go run ./examples/lsp -changes 5000 with more typing
//	go run ./examples/lsp -pace 1s      with a slower server
//
// The server looks for "teh", a misspelling of "the". What an editor needs is order:
// the server applies changes one by one as they were sent, and what is asked after
// them it answers after them. The exit status is 0 only if both ends agreed about
// everything.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lmittmann/tint"

	"github.com/duetrpc/duet/examples/internal/screen"
)

// sessionTime is how long a session may take.
const sessionTime = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	changes int
	pace    time.Duration
}

func parse(args []string, stderr io.Writer) (cfg config, err error) {
	set := flag.NewFlagSet("lsp", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.IntVar(&cfg.changes, "changes", 200, "how many changes the editor makes, 1 to 5000")
	set.DurationVar(&cfg.pace, "pace", 100*time.Millisecond, "how long the server takes for each part of a search, at most 5s")
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
	case cfg.changes < 1 || cfg.changes > 5000:
		return cfg, fmt.Errorf("-changes %d is not in 1 to 5000", cfg.changes)
	case cfg.pace < 0 || cfg.pace > 5*time.Second:
		return cfg, fmt.Errorf("-pace %v is not in 0 to 5s", cfg.pace)
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
		fmt.Fprintf(stderr, "lsp: %v (-h shows the flags)\n", err)
		return 2
	}
	log := slog.New(tint.NewTextHandler(stderr, &tint.Options{
		Level: slog.LevelWarn, TimeFormat: time.TimeOnly, NoColor: !screen.IsTerminal(stderr),
	}))
	if err := play(ctx, cfg, stdout, log); err != nil {
		log.Error("failed", tint.Err(err))
		return 1
	}
	return 0
}

// play runs the two halves. They know nothing of each other but the address.
func play(ctx context.Context, cfg config, stdout io.Writer, log *slog.Logger) error {
	ctx, stop := context.WithTimeoutCause(ctx, sessionTime, fmt.Errorf("no end of the session after %v", sessionTime))
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	served := make(chan error, 1)
	s := newServer(cfg.pace, log)
	go func() { served <- s.serve(ctx, l, s.options()) }()

	e := &editor{screen: screen.New(stdout, "──▶ from the editor to the server, ◀── from the server to the editor"), changes: cfg.changes}
	err = edit(ctx, "ws://"+l.Addr().String()+"/", e, log)
	cause := context.Cause(ctx) // nil, or why the session was cut short
	if err != nil {
		stop() // otherwise the server ends since the editor told it to exit
	}
	if ended := <-served; cause == nil {
		return errors.Join(err, ended)
	}
	return cause
}

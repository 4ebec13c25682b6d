// Mcp plays a session of the Model Context Protocol, revision 2025-11-25, between a
// client and a server with tools: two peers that call each other over one WebSocket
// with the subprotocol "mcp". It shows what the client sees of it.
//
//	go run ./examples/mcp                                 both halves, in one process
//	go run ./examples/mcp -listen 127.0.0.1:8080          the server alone
//	go run ./examples/mcp -connect ws://127.0.0.1:8080/   the client alone
//
// -pace says how long the server's tools take, and -offer which revision the client
// asks for. The server builds and deploys, or pretends to. The exit status is 0 only
// if everything was answered, asked back, cancelled and refused as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/lmittmann/tint"

	"github.com/duetrpc/duet/examples/internal/screen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	listen, connect string
	offer           string
	pace            time.Duration
}

func parse(args []string, stderr io.Writer) (cfg config, err error) {
	set := flag.NewFlagSet("mcp", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&cfg.listen, "listen", "", "run only the server, on this `address`")
	set.StringVar(&cfg.connect, "connect", "", "run only the client, with the server at this `URL`")
	set.StringVar(&cfg.offer, "offer", revision, "the `revision` the client asks for")
	set.DurationVar(&cfg.pace, "pace", 100*time.Millisecond, "how long the server's tools take for each step, at most 5s")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		set.SetOutput(stderr)
		set.Usage()
		return cfg, err
	} else if err != nil {
		return cfg, err
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case set.NArg() > 0:
		return cfg, fmt.Errorf("argument %q is not a flag", set.Arg(0))
	case cfg.pace < 0 || cfg.pace > 5*time.Second:
		return cfg, fmt.Errorf("-pace %v is not in 0 to 5s", cfg.pace)
	case given["listen"] && (given["connect"] || given["offer"]):
		return cfg, errors.New("-listen runs the server alone, which takes no flag but -pace")
	case given["connect"] && given["pace"]:
		return cfg, errors.New("-connect runs the client alone, and -pace is the server's")
	case given["listen"]:
		if _, _, err := net.SplitHostPort(cfg.listen); err != nil {
			return cfg, fmt.Errorf("-listen needs HOST:PORT: %w", err)
		}
	case given["connect"]:
		u, err := url.Parse(cfg.connect)
		if err != nil || u.Host == "" || !slices.Contains([]string{"ws", "wss"}, u.Scheme) {
			return cfg, fmt.Errorf("-connect %q is not a ws:// or wss:// URL", cfg.connect)
		}
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
		fmt.Fprintf(stderr, "mcp: %v (-h shows the flags)\n", err)
		return 2
	}
	level := slog.LevelWarn
	if cfg.listen != "" {
		level = slog.LevelDebug // there is nothing else to see
	}
	log := slog.New(tint.NewTextHandler(stderr, &tint.Options{
		Level: level, TimeFormat: time.TimeOnly, NoColor: !screen.IsTerminal(stderr),
	}))
	switch {
	case cfg.listen != "":
		err = listen(ctx, cfg, stdout, log)
	case cfg.connect != "":
		err = play(ctx, cfg.connect, newClient(cfg.offer, stdout), log)
	default:
		err = both(ctx, cfg, stdout, log)
	}
	if err != nil {
		log.Error("failed", tint.Err(err))
		return 1
	}
	return 0
}

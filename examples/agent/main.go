// Agent plays a short session between an agent and the client that asked for it,
// two peers that call each other over one WebSocket, and draws what passes.
//
//	go run ./examples/agent                                 both halves, in one process
//	go run ./examples/agent -listen 127.0.0.1:8080          the agent alone
//	go run ./examples/agent -connect ws://127.0.0.1:8080/   the client alone
//	go run ./examples/agent -cut 2s                         the client's connection is cut every two seconds
//
// The client has a folder (-dir) and tools to look into it; the agent has a task
// and nothing else. The exit status is 0 only if everything matched.
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

	show "github.com/duetrpc/duet/examples/internal/screen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	root            *os.Root // the folder, nil with listen
	files           int
	listen, connect string
	cut             time.Duration // between two cuts, 0 for none
}

func parse(args []string, stderr io.Writer) (cfg config, err error) {
	set := flag.NewFlagSet("agent", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	dir := set.String("dir", ".", "the folder the agent may look into")
	set.IntVar(&cfg.files, "files", 6, "how many files it may read, 1 to 100")
	set.StringVar(&cfg.listen, "listen", "", "run only the agent, on this `address`")
	set.StringVar(&cfg.connect, "connect", "", "run only the client, with the agent at this `URL`")
	set.DurationVar(&cfg.cut, "cut", 0, "cut the client's connection so often, 50ms to 5s; the agent says more then")
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
	case cfg.files < 1 || cfg.files > 100:
		return cfg, fmt.Errorf("-files %d is not in 1 to 100", cfg.files)
	case cfg.cut != 0 && (cfg.cut < 50*time.Millisecond || cfg.cut > 5*time.Second):
		return cfg, fmt.Errorf("-cut %v is not in 50ms to 5s", cfg.cut)
	case cfg.listen != "" && set.NFlag() > 1:
		return cfg, errors.New("-listen runs the agent alone, which takes no other flag")
	case cfg.listen != "":
		if _, _, err := net.SplitHostPort(cfg.listen); err != nil {
			return cfg, fmt.Errorf("-listen needs HOST:PORT: %w", err)
		}
	case cfg.connect != "":
		u, err := url.Parse(cfg.connect)
		if err != nil || u.Host == "" || !slices.Contains([]string{"ws", "wss"}, u.Scheme) {
			return cfg, fmt.Errorf("-connect %q is not a ws:// or wss:// URL", cfg.connect)
		}
	}
	if cfg.listen == "" {
		if cfg.root, err = os.OpenRoot(*dir); err != nil {
			return cfg, fmt.Errorf("-dir: %w", err)
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
		fmt.Fprintf(stderr, "agent: %v (-h shows the flags)\n", err)
		return 2
	}
	if cfg.root != nil {
		defer cfg.root.Close()
	}
	level := slog.LevelInfo
	if cfg.listen != "" {
		level = slog.LevelDebug // there is nothing else to see
	}
	log := slog.New(tint.NewTextHandler(stderr, &tint.Options{
		Level: level, TimeFormat: time.TimeOnly, NoColor: !show.IsTerminal(stderr),
	}))
	switch {
	case cfg.listen != "":
		err = listen(ctx, cfg.listen, stdout, log)
	case cfg.connect != "":
		err = play(ctx, cfg.connect, newTools(cfg.root, cfg.files), cfg.cut, stdout, log)
	default:
		err = both(ctx, newTools(cfg.root, cfg.files), cfg.cut, stdout, log)
	}
	if err != nil {
		log.Error("failed", tint.Err(err))
		return 1
	}
	return 0
}

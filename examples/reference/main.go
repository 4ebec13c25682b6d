// Command reference serves the methods other implementations test themselves
// against (see peer/peertest/wire), and three for what agents do:
//
//	count {n, ms}      reports n steps of progress, ms apart, and returns n
//	stream {n, bytes}  sends n items {i, data}, with so many bytes of data, and returns n
//	collect {}         takes the items of its caller, and returns how many they were
//
// docs/streams.md has their messages, docs/resume.md those of sessions, which it has for
// those that ask. It has no initialize, nor anything else that opens
// a session: under every profile the methods can be called at once. Its first line of output is the address:
//
//	reference: ws://127.0.0.1:PORT/
//
// It serves until it is interrupted, then finishes what runs and exits 0.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lmittmann/tint"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
	"github.com/duetrpc/duet/resume"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		var usage usageError
		if errors.As(err, &usage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("reference", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:0", "`address` to listen on")
	name := flags.String("profile", "base", "one of "+strings.Join(profile.Names(), ", "))
	drain := flags.Duration("drain", 10*time.Second, "how long to wait for what runs at the end")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return usageError{err}
	}
	p, ok := profile.Named(*name)
	if !ok {
		return usageError{fmt.Errorf("unknown profile %q, not one of %s", *name, strings.Join(profile.Names(), ", "))}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}

	log := slog.New(tint.NewTextHandler(stderr, &tint.Options{Level: slog.LevelWarn}))
	// It knows no users: whoever has the id of a session can take it up.
	sessions := resume.NewSessions(&resume.Options{Anonymous: true, Logger: log})
	server := peer.NewServer(sessions.Server(&peer.Options{Handler: methods(p), Profile: p, Logger: log}))
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(stdout, "reference: ws://%s/\n", l.Addr())

	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), *drain)
	defer cancel()
	return errors.Join(web.Shutdown(end), server.Shutdown(end))
}

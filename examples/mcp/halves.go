package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

const (
	subprotocol = "mcp"
	sessionTime = time.Minute     // how long a session may take
	drainTime   = 5 * time.Second // how long what runs may take to finish
)

// both runs the two halves in one process. They know nothing of that.
func both(ctx context.Context, cfg config, stdout io.Writer, log *slog.Logger) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(serving, l, newServer(cfg.pace, log).options(serving)) }()
	err = play(ctx, address(l), newClient(cfg.offer, stdout), log)
	stop()
	return errors.Join(err, <-served)
}

// listen runs the server alone, until ctx ends.
func listen(ctx context.Context, cfg config, stdout io.Writer, log *slog.Logger) error {
	l, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	fmt.Fprintln(stdout, address(l))
	return serve(ctx, l, newServer(cfg.pace, log).options(ctx))
}

// address is the URL to connect to. A listener on all addresses has none of its
// own, and answers to this one too.
func address(l net.Listener) string {
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if net.ParseIP(host).IsUnspecified() {
		host = "localhost"
	}
	return "ws://" + net.JoinHostPort(host, port) + "/"
}

// serve serves on l until ctx ends, then lets what runs end.
func serve(ctx context.Context, l net.Listener, opts *peer.Options) (err error) {
	rpc := peer.NewServer(opts)
	web := &http.Server{
		Handler:           rpc,
		ReadHeaderTimeout: drainTime,
		ErrorLog:          slog.NewLogLogger(opts.Logger.Handler(), slog.LevelWarn),
	}
	broken := make(chan error, 1)
	go func() { broken <- web.Serve(l) }()
	select {
	case err = <-broken:
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	// In this order: the first takes in no more, and knows nothing of WebSockets.
	return errors.Join(err, web.Shutdown(drain), rpc.Shutdown(drain))
}

// play runs the client half.
func play(ctx context.Context, url string, c *client, log *slog.Logger) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sessionTime, fmt.Errorf("no end of the session after %v", sessionTime))
	defer cancel()
	opts := &peer.Options{Handler: c.methods(), Profile: profile.MCP20251125(), Logger: log}
	opts.WebSocket.Subprotocols = []string{subprotocol}
	conn, err := peer.Dial(ctx, url, opts)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	c.conn = conn
	err = c.session(ctx)
	interrupted := context.Cause(ctx) // even if the session was faster

	// There is no message for the end ("Lifecycle", Shutdown): the connection is closed.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	ended := errors.Join(conn.Shutdown(drain), conn.Err())
	switch {
	case interrupted != nil:
		return interrupted
	case err != nil || ended != nil:
		return fmt.Errorf("client: %w", errors.Join(err, ended))
	}
	if err := c.verdict(); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return nil
}

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

	"golang.org/x/sync/errgroup"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/wsconn"
)

const (
	sessionTime = 20 * time.Second // how long a session may take
	drainTime   = 5 * time.Second  // how long what runs may take to finish
)

// both runs the two halves in one process. They know nothing of that.
func both(ctx context.Context, t *tools, cut time.Duration, stdout io.Writer, log *slog.Logger) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(ctx)
	group.Go(func() error { return serve(serving, l, log) })
	group.Go(func() error {
		defer stop()
		return play(ctx, address(l), t, cut, stdout, log)
	})
	return group.Wait()
}

// listen runs the agent alone, until ctx ends.
func listen(ctx context.Context, at string, stdout io.Writer, log *slog.Logger) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, address(l))
	return serve(ctx, l, log)
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

// serve runs the agent half on l until ctx ends, then lets runs finish.
func serve(ctx context.Context, l net.Listener, log *slog.Logger) error {
	// Clients that ask for a session keep it when their connection is cut. This agent
	// knows no users; where there are some, Options.Authorize names them.
	sessions := resume.NewSessions(&resume.Options{Anonymous: true, Logger: log})
	agent := peer.NewServer(sessions.Server(&peer.Options{Handler: newAgent(log), Logger: log}))
	web := &http.Server{
		Handler:           agent,
		ReadHeaderTimeout: drainTime,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	group, ctx := errgroup.WithContext(ctx) // which ends also if the listener fails
	group.Go(func() error {
		if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	log.Info("agent listens", "address", l.Addr())
	<-ctx.Done()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	// In this order: the first takes in no more, and knows nothing of WebSockets.
	return errors.Join(web.Shutdown(drain), present(agent.Shutdown(drain)), group.Wait())
}

// present is err, unless that is about a client that was not there: nobody can come back to
// an agent that ends, and that is no failure of it.
func present(err error) error {
	var gap *resume.GapError
	if errors.As(err, &gap) && gap.Reason == resume.Stopped {
		return nil
	}
	return err
}

// play runs the client half: it connects, has the agent read, and compares.
func play(ctx context.Context, url string, t *tools, cut time.Duration, stdout io.Writer, log *slog.Logger) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sessionTime, fmt.Errorf("no end of the session after %v", sessionTime))
	defer cancel()
	screen := newScreen(stdout)
	wire := &tap{screen: screen}
	opts := peer.Options{Handler: t.methods(), Logger: log}
	knife := &knife{every: cut, tap: wire}
	connect := connectOnce
	if cut > 0 {
		connect = knife.connect
		t.talks = 5 * cut
	}
	conn, stop, err := connect(ctx, url, wire, opts)
	if err != nil {
		return err
	}
	defer stop()
	screen.begin()
	log.Info("client connected", "url", url, "folder", t.root.Name(), "files", t.files)

	t.heard = wire.heard
	cutting, enough := context.WithCancel(ctx)
	cuts := knife.start(cutting)
	t.run(ctx, conn, goalRead)
	enough()
	n := <-cuts
	interrupted := context.Cause(ctx) // even if the report was faster

	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if interrupted != nil {
		// The call is given up. That the agent stops shows in its answer, which nobody
		// waits for any more.
		wire.settled(drain)
	}
	err = errors.Join(conn.Shutdown(drain), conn.Err())
	if interrupted != nil {
		wire.cancelled()
		return errors.Join(interrupted, err)
	}
	compared, wrong := t.found()
	if cut > 0 {
		compared += fmt.Sprintf(", over %d cuts", n)
		if n == 0 {
			wrong.add("the connection was never cut")
		}
	}
	return errors.Join(err, screen.verdict(compared, append(wire.sum(), wrong...)))
}

// connectOnce makes a connection as peer.Dial does, with the tap between.
func connectOnce(ctx context.Context, url string, wire *tap, opts peer.Options) (conn *peer.Conn, stop func(), err error) {
	ws, _, err := wsconn.Dial(ctx, url, nil)
	if err != nil {
		return nil, nil, err
	}
	wire.Transport = ws
	return peer.New(wire, &opts), func() {}, nil
}

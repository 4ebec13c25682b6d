package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

const (
	misspelled, correct = "teh", "the"

	parts     = 4               // of a document, searched one after the other
	drainTime = 5 * time.Second // how long what runs may take to finish
)

// server is a language server. It serves one editor, and ends when that says so.
type server struct {
	pace time.Duration
	log  *slog.Logger
	exit chan error // whether the editor had asked to shut down before; has room for one

	mu       sync.Mutex
	texts    map[string]text // by URI
	shutdown bool
}

func newServer(pace time.Duration, log *slog.Logger) *server {
	return &server{pace: pace, log: log, exit: make(chan error, 1), texts: map[string]text{}}
}

// options say what the server handles. The profile does the rest: it refuses what
// comes before initialize and after shutdown, and answers what is cancelled.
func (s *server) options() *peer.Options {
	var reg peer.Registry
	initialize.Handle(&reg, s.initialize)
	initialized.Handle(&reg, func(context.Context, struct{}) error { return nil })
	didOpen.Handle(&reg, s.didOpen)
	didChange.Handle(&reg, s.didChange)
	didSave.Handle(&reg, s.didSave)
	references.Handle(&reg, s.references)
	symbols.Handle(&reg, s.symbols)
	executeCommand.Handle(&reg, s.command)
	digest.Handle(&reg, s.digest)
	shutdown.Handle(&reg, s.end)
	exit.Handle(&reg, s.leave)
	return &peer.Options{
		Handler: &reg,
		Profile: profile.LSP317(),
		Limits:  peer.Limits{Connections: 1},
		Logger:  s.log,
	}
}

// serve serves on l until the editor tells it to exit, or ctx ends.
func (s *server) serve(ctx context.Context, l net.Listener, opts *peer.Options) (err error) {
	rpc := peer.NewServer(opts)
	web := &http.Server{
		Handler:           rpc,
		ReadHeaderTimeout: drainTime,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	broken := make(chan error, 1)
	go func() { broken <- web.Serve(l) }()
	select {
	case err = <-broken:
	case err = <-s.exit:
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	// In this order: the first takes in no more, and knows nothing of WebSockets.
	return errors.Join(err, web.Shutdown(drain), rpc.Shutdown(drain))
}

func (s *server) initialize(_ context.Context, in InitializeParams) (out InitializeResult, err error) {
	if !in.Capabilities.Workspace.ApplyEdit {
		return out, &peer.Error{Code: peer.InvalidParams, Message: "an editor that applies no edits is of no use here"}
	}
	out.ServerInfo = Info{"spelling", "1.0"}
	c := &out.Capabilities
	c.PositionEncoding = "utf-16" // which every editor has
	c.TextDocumentSync.OpenClose = true
	c.TextDocumentSync.Change = syncIncremental
	c.TextDocumentSync.Save = true
	c.ReferencesProvider = true
	c.WorkspaceSymbolProvider.WorkDoneProgress = true
	c.ExecuteCommandProvider.Commands = []string{fixCommand}
	c.ExecuteCommandProvider.WorkDoneProgress = true
	return out, nil
}

func (s *server) didOpen(_ context.Context, in DidOpenParams) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts[in.TextDocument.URI] = text{in.TextDocument.Version, in.TextDocument.Text}
	return nil
}

// didChange needs no queue of its own: notifications are handled one after the
// other, in the order they were sent.
func (s *server) didChange(_ context.Context, in DidChangeParams) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.texts[in.TextDocument.URI]
	if !ok || in.TextDocument.Version != t.version+1 {
		return fmt.Errorf("a change to version %d, and this is version %d", in.TextDocument.Version, t.version)
	}
	for _, c := range in.ContentChanges {
		if err := t.apply(c); err != nil {
			return err
		}
	}
	t.version++
	s.texts[in.TextDocument.URI] = t
	return nil
}

// didSave pushes what is wrong.
func (s *server) didSave(ctx context.Context, in DidSaveParams) error {
	t, err := s.text(in.TextDocument)
	if err != nil {
		return err
	}
	out := Diagnostics{URI: in.TextDocument.URI, Version: t.version}
	for _, at := range t.find(misspelled) {
		out.Diagnostics = append(out.Diagnostics, Diagnostic{at, severityWarning, "spelling", "did you mean \"" + correct + "\"?"})
	}
	editor, _ := peer.CallerFrom(ctx)
	return diagnostics.Notify(ctx, editor, out)
}

func (s *server) digest(_ context.Context, in Document) (Digest, error) {
	t, err := s.text(in)
	return t.digest(), err
}

// text is what the editor has sent so far: a call starts when the notifications
// before it have been handled.
func (s *server) text(d Document) (text, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.texts[d.URI]
	if !ok {
		return t, &peer.Error{Code: peer.InvalidParams, Message: fmt.Sprintf("%q is not open", d.URI)}
	}
	return t, nil
}

// end is all there is to a shutdown: what comes after it the profile refuses.
func (s *server) end(context.Context, any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shutdown = true
	return nil, nil
}

// leave ends the server, well only if it was asked to shut down before ("Exit
// Notification").
func (s *server) leave(context.Context, any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shutdown {
		err = errors.New("server: exit without shutdown")
	}
	select {
	case s.exit <- err:
	default: // it was told already
	}
	return nil
}

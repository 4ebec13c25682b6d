package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/duetrpc/duet/examples/internal/screen"
	"github.com/duetrpc/duet/peer"
)

// session is all that the editor does. Each step fails if anything is not as it
// should be.
func (e *editor) session(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		e.early, e.start, e.write, e.save, e.search, e.giveUp, e.fix, e.save, e.quit,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for kind, n := range e.conn.Stats().Events {
		if n > 0 {
			return fmt.Errorf("%d of what never became an answer: %v", n, kind)
		}
	}
	e.screen.Matched("%d versions of one text, and what both ends know of it", e.text.version)
	return nil
}

// refused makes sure that the other end has answered with an error, and this code.
func (e *editor) refused(method string, err error, code peer.Code) error {
	var answer *peer.Error
	switch {
	case err == nil:
		return fmt.Errorf("%s was served, and was to be refused with %d", method, code)
	case !errors.As(err, &answer) || answer.Code != code:
		return fmt.Errorf("was to be refused with %d: %w", code, err)
	}
	e.screen.Line(screen.Out, method, "answered with %d, %s", answer.Code, answer.Message)
	return nil
}

// early calls before the session is open.
func (e *editor) early(ctx context.Context) error {
	_, err := digest.Call(ctx, e.conn, Document{URI: uri})
	return e.refused(string(digest), err, notInitialized)
}

func (e *editor) start(ctx context.Context) error {
	in := InitializeParams{ClientInfo: Info{"author", "1.0"}}
	in.Capabilities.Workspace.ApplyEdit = true
	in.Capabilities.General.PositionEncodings = []string{"utf-16"}
	out, err := initialize.Call(ctx, e.conn, in)
	if err != nil {
		return err
	}
	c := &out.Capabilities
	if c.PositionEncoding != "utf-16" || c.TextDocumentSync.Change != syncIncremental || !slices.Contains(c.ExecuteCommandProvider.Commands, fixCommand) {
		return fmt.Errorf("%s is not a server for this editor: %+v", out.ServerInfo.Name, *c)
	}
	e.screen.Line(screen.Out, string(initialize), "%s %s, by increments, in %s", out.ServerInfo.Name, out.ServerInfo.Version, c.PositionEncoding)
	return initialized.Notify(ctx, e.conn, struct{}{})
}

// write opens the document and types, without waiting for anything.
func (e *editor) write(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text = text{1, story}
	var in DidOpenParams
	in.TextDocument.Document = Document{uri, e.text.version}
	in.TextDocument.LanguageID, in.TextDocument.Text = "plaintext", e.text.body
	if err := didOpen.Notify(ctx, e.conn, in); err != nil {
		return err
	}
	e.screen.Line(screen.Out, string(didOpen), "%s, %d bytes", uri, len(e.text.body))
	random := rand.New(rand.NewPCG(1, 2))
	for range e.changes {
		if err := e.change(ctx, e.conn, typed(random, &e.text)); err != nil {
			return err
		}
	}
	e.screen.Line(screen.Out, string(didChange), "%d times, %d bytes now", e.changes, len(e.text.body))
	return nil
}

// save makes sure that both ends have the same text, and that the server has said
// what is wrong with it: it did so before it was asked for the digest, so that is
// here before the answer is.
func (e *editor) save(ctx context.Context) error {
	document := Document{URI: uri}
	if err := didSave.Notify(ctx, e.conn, DidSaveParams{document}); err != nil {
		return err
	}
	got, err := digest.Call(ctx, e.conn, document)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if want := e.text.digest(); got != want {
		return fmt.Errorf("the texts differ: the server has %v, the editor %v", got, want)
	}
	e.screen.Line(screen.Out, string(digest), "both have version %d, sha256 %.12s", got.Version, got.SHA256)
	var warned []Range
	for _, d := range e.pushed.Diagnostics {
		warned = append(warned, d.Range)
	}
	if wrong := e.text.find(misspelled); e.pushed.Version != e.text.version || !slices.Equal(warned, wrong) {
		return fmt.Errorf("the server warned of %v in version %d, want %v in version %d", warned, e.pushed.Version, wrong, e.text.version)
	}
	return nil
}

// quit ends the session, and then the server.
func (e *editor) quit(ctx context.Context) error {
	if _, err := shutdown.Call(ctx, e.conn, nil); err != nil {
		return err
	}
	e.screen.Line(screen.Out, string(shutdown), "done")
	_, err := digest.Call(ctx, e.conn, Document{URI: uri})
	if err := e.refused(string(digest), err, peer.InvalidRequest); err != nil {
		return err
	}
	if err := exit.Notify(ctx, e.conn, nil); err != nil {
		return err
	}
	select {
	case <-e.conn.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	e.screen.Line(screen.Out, string(exit), "the server has gone")
	return e.conn.Err()
}

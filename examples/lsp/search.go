package main

import (
	"context"
	"fmt"
	"time"

	"github.com/duetrpc/duet/peer"
)

// What the server needs time for: it tells how far it is, and can be stopped.

// references finds the word at a position. What it has found it sends at once, as
// partial results; then the result itself has to be empty ("Partial Result
// Progress").
func (s *server) references(ctx context.Context, in ReferenceParams, send func([]Location) error) ([]Location, error) {
	t, err := s.text(in.TextDocument)
	if err != nil {
		return nil, err
	}
	var part [parts][]Location
	lines := t.lines()
	for _, at := range t.find(t.wordAt(in.Position)) {
		n := at.Start.Line * parts / lines
		part[n] = append(part[n], Location{in.TextDocument.URI, at})
	}
	for _, found := range part {
		if err := s.search(ctx); err != nil {
			return nil, err
		}
		if err := send(found); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// search takes the time of one part of a search.
func (s *server) search(ctx context.Context) error {
	select {
	case <-time.After(s.pace):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// symbols searches a workspace that is so large that nobody waits for the end.
func (s *server) symbols(ctx context.Context, _ SymbolParams) ([]Symbol, error) {
	if err := report(ctx, peer.Progress{Message: "1 file of very many"}); err != nil {
		return nil, err
	}
	<-ctx.Done()
	return nil, context.Cause(ctx) // the answer is -32800, which the protocol wants
}

// command corrects a document. Only the editor may change that, so it is asked to,
// while its own call is open.
func (s *server) command(ctx context.Context, in CommandParams) (out Fixed, err error) {
	if in.Command != fixCommand || len(in.Arguments) != 1 {
		return out, &peer.Error{Code: peer.InvalidParams, Message: "it is " + fixCommand + " with one document"}
	}
	document := in.Arguments[0]
	t, err := s.text(document)
	if err != nil {
		return out, err
	}
	ask := ApplyEditParams{Label: "Correct the spelling"}
	var edits []TextEdit
	for _, at := range t.find(misspelled) {
		edits = append(edits, TextEdit{at, correct})
	}
	ask.Edit.Changes = map[string][]TextEdit{document.URI: edits}
	if err := report(ctx, peer.Progress{Done: 1, Total: 2, Message: "asking the editor"}); err != nil {
		return out, err
	}

	editor, _ := peer.CallerFrom(ctx)
	answer, err := applyEdit.Call(ctx, editor, ask)
	if err != nil {
		return out, peer.Forward(err)
	}
	if answer.Applied {
		out.Fixed = len(edits)
	}
	// The editor sent its changes before its answer, so they are here.
	t, err = s.text(document)
	out.Left = len(t.find(misspelled))
	if err != nil {
		return out, err
	}
	return out, report(ctx, peer.Progress{Done: 2, Total: 2, Message: fmt.Sprintf("%d left", out.Left)})
}

// report tells the caller of a handler how far it is, if it wants to know.
func report(ctx context.Context, p peer.Progress) error {
	to, _ := peer.ProgressFrom(ctx)
	return to.Report(p)
}

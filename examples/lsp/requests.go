package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duetrpc/duet/examples/internal/screen"
	"github.com/duetrpc/duet/peer"
)

// The requests of the editor that take their time.

// search shows what is found while more is searched.
func (e *editor) search(ctx context.Context) error {
	want := e.find(correct)
	if len(want) == 0 {
		return errors.New("nothing is left to search for")
	}
	s := references.Call(ctx, e.conn, ReferenceParams{TextDocument: Document{URI: uri}, Position: want[0].Start})
	e.screen.Line(screen.Out, string(references), "of %q", correct)
	var found []Range
	for part, err := range s.All() {
		if err != nil {
			return err
		}
		for _, at := range part {
			found = append(found, at.Range)
		}
		e.screen.Line(screen.In, "  partial result", "%d more", len(part))
	}
	rest, err := s.Result()
	if err != nil {
		return err
	}
	e.screen.Line(screen.In, "  result", "%d in all", len(found))
	if len(rest) > 0 || !slices.Equal(found, want) {
		return fmt.Errorf("the server found %v and then %v, want %v", found, rest, want)
	}
	return nil
}

// giveUp stops a search that takes too long, and waits for its answer: the protocol has
// a call that was cancelled answered all the same ("Cancellation Support"). Where nobody
// cares for that, ctx would do.
func (e *editor) giveUp(ctx context.Context) error {
	enough, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := symbols.Call(ctx, e.conn, SymbolParams{Query: correct}, peer.CancelBy(enough),
		peer.OnProgress(func(p peer.Progress) {
			e.screen.Line(screen.In, "  "+string(progress), "report %s", p.Message)
			e.screen.Line(screen.Out, "$/cancelRequest", "enough")
			cancel()
		}))
	return e.refused(string(symbols), err, peer.Cancelled)
}

// fix has the server correct the document, which asks the editor to.
func (e *editor) fix(ctx context.Context) error {
	want := Fixed{Fixed: len(e.find(misspelled))}
	e.screen.Line(screen.Out, string(executeCommand), "%s", fixCommand)
	got, err := executeCommand.Call(ctx, e.conn, CommandParams{fixCommand, []Document{{URI: uri}}, fixToken})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.screen.Line(screen.In, "  result", "%d corrected, %d left", got.Fixed, got.Left)
	if kinds := []string{"begin", "report", "report", "end"}; got != want || !slices.Equal(e.told, kinds) {
		return fmt.Errorf("the server corrected %+v and told %q, want %+v and %q", got, e.told, want, kinds)
	}
	return nil
}

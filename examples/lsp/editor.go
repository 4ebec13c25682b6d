package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"unicode/utf8"

	"github.com/duetrpc/duet/examples/internal/screen"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

const (
	uri      = "file:///story.txt"
	fixToken = "fix" // names the progress of the command
	story    = `This is teh story of the cat, the mat and 𝄞.
The cat sat on the mat, and the mat lay on teh floor.
Then teh music began: 𝄞 𝄞, und die Töne fielen the stairs down.
All the rest is in teh other book.
`
)

// editor is the half that has the document.
type editor struct {
	conn    *peer.Conn
	screen  *screen.Screen
	changes int // to make

	mu     sync.Mutex // held while changes leave, too, so that they do in their order
	text   text
	pushed Diagnostics // the last
	told   []string    // the kinds of progress of the command
}

// edit plays the editor's half of a session with the server at url.
func edit(ctx context.Context, url string, e *editor, log *slog.Logger) error {
	conn, err := peer.Dial(ctx, url, &peer.Options{Handler: e.methods(), Profile: profile.LSP317(), Logger: log})
	if err != nil {
		return fmt.Errorf("editor: %w", err)
	}
	defer func() {
		_ = conn.Close()
		<-conn.Done()
	}()
	e.conn = conn
	if err := e.session(ctx); err != nil {
		return fmt.Errorf("editor: %w", err)
	}
	return nil
}

// methods are what the server may ask and tell.
func (e *editor) methods() *peer.Registry {
	var reg peer.Registry
	diagnostics.Handle(&reg, e.diagnostics)
	progress.Handle(&reg, e.progress)
	applyEdit.Handle(&reg, e.apply)
	return &reg
}

func (e *editor) diagnostics(_ context.Context, in Diagnostics) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pushed = in
	e.screen.Line(screen.In, string(diagnostics), "version %d: %d warnings", in.Version, len(in.Diagnostics))
	return nil
}

// progress is told of the command, and of nothing else: what a call asks for with
// peer.OnProgress, or as a stream, does not come here.
func (e *editor) progress(_ context.Context, in ProgressParams) error {
	if in.Token != fixToken {
		return fmt.Errorf("no progress has the token %q", in.Token)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, in.Value.Kind)
	v := in.Value
	switch v.Kind {
	case "begin":
		e.screen.Line(screen.In, "  "+string(progress), "begin  %s", v.Title)
	case "report":
		e.screen.Line(screen.In, "  "+string(progress), "report %d%%, %s", v.Percentage, v.Message)
	default:
		e.screen.Line(screen.In, "  "+string(progress), "%s", v.Kind)
	}
	return nil
}

// apply lets the server change the document. It hears of its own changes as of all
// others: before the answer, since that is how they leave.
func (e *editor) apply(ctx context.Context, in ApplyEditParams) (ApplyEditResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	edits := in.Edit.Changes[uri]
	server, _ := peer.CallerFrom(ctx)
	if err := e.change(ctx, server, changes(edits)...); err != nil {
		return ApplyEditResult{}, err
	}
	e.screen.Line(screen.In, "  "+string(applyEdit), "%q: %d edits, now version %d", in.Label, len(edits), e.text.version)
	return ApplyEditResult{Applied: true}, nil
}

// change makes changes, and tells the server. e.mu is held.
func (e *editor) change(ctx context.Context, server peer.Caller, changes ...Change) error {
	for _, c := range changes {
		if err := e.text.apply(c); err != nil {
			return err
		}
	}
	e.text.version++
	return didChange.Notify(ctx, server, DidChangeParams{Document{uri, e.text.version}, changes})
}

func (e *editor) find(word string) []Range {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.find(word)
}

// typed is what an author types somewhere, instead of what was there. It is the
// same each time that random is.
func typed(random *rand.Rand, t *text) Change {
	start := random.IntN(len(t.body) + 1)
	end := min(start+random.IntN(6), len(t.body))
	for start > 0 && start < len(t.body) && !utf8.RuneStart(t.body[start]) {
		start--
	}
	for end < len(t.body) && !utf8.RuneStart(t.body[end]) {
		end++
	}
	texts := []string{"", "x", " teh ", " the ", "é", "𝄞", "\n", " cat, "}
	return Change{Range{t.position(start), t.position(end)}, texts[random.IntN(len(texts))]}
}

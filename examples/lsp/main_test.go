package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/duetrpc/duet/examples/internal/screen"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/duetrpc/duet/examples/internal/exampletest"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

// The whole of what is shown: nothing of it depends on who is faster.
const wantScreen = `──▶ from the editor to the server, ◀── from the server to the editor

──▶ spelling/digest                   answered with -32002, not initialized
──▶ initialize                        spelling 1.0, by increments, in utf-16
──▶ textDocument/didOpen              file:///story.txt, 208 bytes
──▶ textDocument/didChange            200 times, 226 bytes now
◀── textDocument/publishDiagnostics   version 201: 4 warnings
──▶ spelling/digest                   both have version 201, sha256 7bc15f7bba48
──▶ textDocument/references           of "the"
◀──   partial result                  4 more
◀──   partial result                  0 more
◀──   partial result                  3 more
◀──   partial result                  1 more
◀──   result                          8 in all
◀──   $/progress                      report 1 file of very many
──▶ $/cancelRequest                   enough
──▶ workspace/symbol                  answered with -32800, request cancelled
──▶ workspace/executeCommand          spelling.fix
◀──   $/progress                      begin  workspace/executeCommand
◀──   $/progress                      report 50%, asking the editor
◀──   workspace/applyEdit             "Correct the spelling": 4 edits, now version 202
◀──   $/progress                      report 100%, 0 left
◀──   $/progress                      end
◀──   result                          4 corrected, 0 left
◀── textDocument/publishDiagnostics   version 202: 0 warnings
──▶ spelling/digest                   both have version 202, sha256 8145a5f2eea2
──▶ shutdown                          done
──▶ spelling/digest                   answered with -32600, the session is closed
──▶ exit                              the server has gone

matched: 202 versions of one text, and what both ends know of it
`

func TestSession(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	var out, log exampletest.Output
	if status := run(t.Context(), []string{"-pace", "0"}, &out, &log); status != 0 || out.String() != wantScreen || log.String() != "" {
		t.Errorf("run() = %d, want 0, nothing in the log, and another screen than\n%s%s", status, out.String(), log.String())
	}
}

func TestManyChanges(t *testing.T) {
	for _, n := range []int{1, 5000} {
		var out, log exampletest.Output
		status := run(t.Context(), []string{"-pace", "0", "-changes", fmt.Sprint(n)}, &out, &log)
		if want := fmt.Sprintf("\nmatched: %d versions", n+2); status != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("run() = %d, want 0 and %q\n%s%s", status, want, out.String(), log.String())
		}
	}
}

// Whatever is under way, an interrupt ends it, and it is said why.
func TestInterrupt(t *testing.T) {
	for _, on := range []string{"didOpen", "partial result", "$/cancelRequest", "applyEdit", "──▶ shutdown"} {
		t.Run(on, func(t *testing.T) {
			defer exampletest.NoGoroutines(t)
			ctx, interrupt := context.WithCancelCause(t.Context())
			out := &exampletest.Output{On: on, Do: func() { interrupt(errors.New("stop it")) }}
			var log exampletest.Output
			status := run(ctx, []string{"-pace", "0"}, out, &log)
			if status != 1 || !strings.Contains(log.String(), "stop it") || strings.Contains(out.String(), "matched") {
				t.Errorf("run() = %d, want 1, why, and no verdict\n%s%s", status, out.String(), log.String())
			}
		})
	}
}

func TestStatus(t *testing.T) {
	tests := map[string]struct {
		args   []string
		status int
		stderr string
	}{
		"help":             {[]string{"-h"}, 0, "how many changes the editor makes"},
		"unknown flag":     {[]string{"-x"}, 2, "-x"},
		"argument":         {[]string{"x"}, 2, `argument "x" is not a flag`},
		"no number":        {[]string{"-changes", "x"}, 2, `invalid value "x" for flag -changes`},
		"no changes":       {[]string{"-changes", "0"}, 2, "-changes 0 is not in 1 to 5000"},
		"too many changes": {[]string{"-changes", "5001"}, 2, "-changes 5001 is not in 1 to 5000"},
		"no pace":          {[]string{"-pace", "-1s"}, 2, "-pace -1s is not in 0 to 5s"},
		"too slow":         {[]string{"-pace", "1h"}, 2, "-pace 1h0m0s is not in 0 to 5s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, log exampletest.Output
			status := run(t.Context(), tt.args, &out, &log)
			if status != tt.status || !strings.Contains(log.String(), tt.stderr) || out.String() != "" {
				t.Errorf("run(%q) = %d, want %d and %q on stderr\n%s%s", tt.args, status, tt.status, tt.stderr, out.String(), log.String())
			}
		})
	}
}

// tampered is a caller that changes what the server says.
type tampered struct {
	peer.Caller
	notify func(params any) any
	call   func(result any) bool
}

func (c tampered) Notify(ctx context.Context, method string, params any) error {
	if c.notify != nil {
		params = c.notify(params)
	}
	return c.Caller.Notify(ctx, method, params)
}

func (c tampered) Call(ctx context.Context, method string, params, result any, opts ...peer.CallOption) error {
	if c.call != nil && c.call(result) {
		return nil
	}
	return c.Caller.Call(ctx, method, params, result, opts...)
}

// A server that does anything else than it should is found out.
func TestMismatch(t *testing.T) {
	// handled changes the outcome of one method.
	handled := func(method string, change func(n int, serve func() (any, error)) (any, error)) func(*peer.Options) {
		return func(opts *peer.Options) {
			n := 0
			opts.Handler = peer.Chain(opts.Handler, func(next peer.Handler) peer.Handler {
				return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
					serve := func() (any, error) { return next.ServeRPC(ctx, req) }
					if req.Method != method {
						return serve()
					}
					n++
					return change(n, serve)
				})
			})
		}
	}
	result := func(method string, change func(result any) any) func(*peer.Options) {
		return handled(method, func(_ int, serve func() (any, error)) (any, error) {
			result, err := serve()
			return change(result), err
		})
	}
	said := func(c tampered) func(*peer.Options) {
		return func(opts *peer.Options) {
			opts.Outgoing = append(opts.Outgoing, func(to peer.Caller) peer.Caller {
				c := c
				c.Caller = to
				return c
			})
		}
	}
	tests := map[string]struct {
		change func(*peer.Options)
		want   string
	}{
		"takes calls before initialize": {
			func(opts *peer.Options) { opts.Profile.Opening = peer.Opening{} },
			"was to be refused with -32002",
		},
		"takes calls after shutdown": {
			func(opts *peer.Options) { opts.Profile.Opening.Close = "" },
			"spelling/digest was served, and was to be refused with -32600",
		},
		"knows no increments": {
			result("initialize", func(any) any { return InitializeResult{} }),
			"is not a server for this editor",
		},
		"loses a change": {
			handled("textDocument/didChange", func(n int, serve func() (any, error)) (any, error) {
				if n == 100 {
					return nil, nil
				}
				return serve()
			}),
			"the texts differ: the server has {100 ",
		},
		"loses a warning": {
			said(tampered{notify: func(params any) any {
				if d, ok := params.(Diagnostics); ok {
					d.Diagnostics = d.Diagnostics[1:]
					return d
				}
				return params
			}}),
			"the server warned of",
		},
		"finds one twice": {
			result("textDocument/references", func(any) any { return make([]Location, 1) }),
			"the server found",
		},
		"answers what was cancelled": {
			handled("workspace/symbol", func(_ int, serve func() (any, error)) (any, error) {
				_, _ = serve()
				return []Symbol{}, nil
			}),
			"workspace/symbol was served, and was to be refused with -32800",
		},
		"corrects without the editor": {
			said(tampered{call: func(result any) bool {
				if r, ok := result.(*ApplyEditResult); ok {
					r.Applied = true
					return true
				}
				return false
			}}),
			"the server corrected {Fixed:4 Left:4}",
		},
		"fails": {
			handled("shutdown", func(int, func() (any, error)) (any, error) { return nil, errors.New("secret") }),
			`call "shutdown": jsonrpc`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defer exampletest.NoGoroutines(t)
			s, url, stop := serving(t, tt.change)
			err := edit(t.Context(), url, &editor{screen: screen.New(io.Discard, ""), changes: 200}, s.log)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("edit() = %v, want %q", err, tt.want)
			}
			if err := stop(); err != nil {
				t.Errorf("serve() = %v", err)
			}
		})
	}
}

// serving runs the server's half alone. stop returns how it ended.
func serving(t *testing.T, change func(*peer.Options)) (s *server, url string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = newServer(0, slog.New(slog.DiscardHandler))
	opts := s.options()
	change(opts)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx, l, opts) }()
	return s, "ws://" + l.Addr().String() + "/", func() error {
		cancel()
		return <-served
	}
}

// client is another editor than ours.
func client(t *testing.T, url string) *peer.Conn {
	t.Helper()
	conn, err := peer.Dial(t.Context(), url, &peer.Options{Profile: profile.LSP317()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		<-conn.Done()
	})
	return conn
}

func TestServer(t *testing.T) {
	_, url, stop := serving(t, func(*peer.Options) {})
	c := client(t, url)
	ctx := t.Context()
	if conn, err := peer.Dial(ctx, url, nil); err == nil {
		t.Errorf("a second editor was let in: %v", conn)
	}
	if _, err := initialize.Call(ctx, c, InitializeParams{}); !errors.Is(err, &peer.Error{Code: peer.InvalidParams}) {
		t.Errorf("initialize() without capabilities = %v, want code %d", err, peer.InvalidParams)
	}
	var in InitializeParams
	in.Capabilities.Workspace.ApplyEdit = true
	if _, err := initialize.Call(ctx, c, in); err != nil { // the first one opened nothing
		t.Errorf("initialize() = %v", err)
	}
	nowhere := Document{URI: "file:///nowhere"}
	for method, call := range map[string]func() error{
		string(digest): func() error { _, err := digest.Call(ctx, c, nowhere); return err },
		string(references): func() error {
			_, err := references.Call(ctx, c, ReferenceParams{TextDocument: nowhere}).Result()
			return err
		},
		fixCommand: func() error {
			_, err := executeCommand.Call(ctx, c, CommandParams{Command: fixCommand, Arguments: []Document{nowhere}})
			return err
		},
		"another command": func() error {
			_, err := executeCommand.Call(ctx, c, CommandParams{Command: "format"})
			return err
		},
	} {
		if err := call(); !errors.Is(err, &peer.Error{Code: peer.InvalidParams}) {
			t.Errorf("%s = %v, want code %d", method, err, peer.InvalidParams)
		}
	}
	if err := exit.Notify(ctx, c, nil); err != nil {
		t.Errorf("exit = %v", err)
	}
	<-c.Done()
	if err := stop(); err == nil || err.Error() != "server: exit without shutdown" {
		t.Errorf("serve() = %v, want that there was no shutdown", err)
	}
}

// Changes that do not fit change nothing.
func TestBadChanges(t *testing.T) {
	s := newServer(0, slog.New(slog.DiscardHandler))
	s.texts[uri] = text{1, "a\nb"}
	change := func(version int, r Range) DidChangeParams {
		return DidChangeParams{Document{uri, version}, []Change{{Range{}, "x"}, {r, "y"}}}
	}
	for name, in := range map[string]DidChangeParams{
		"a version left out":    change(3, Range{}),
		"a version twice":       change(1, Range{}),
		"no such line":          change(2, Range{Position{0, 0}, Position{2, 0}}),
		"it begins past it":     change(2, Range{Position{3, 0}, Position{3, 0}}),
		"it ends before":        change(2, Range{Position{1, 1}, Position{0, 0}}),
		"an unopened document":  {TextDocument: Document{"file:///nowhere", 1}},
		"no version whatsoever": {TextDocument: Document{URI: uri}},
	} {
		if err := s.didChange(t.Context(), in); err == nil {
			t.Errorf("%s: didChange() = nil", name)
		}
	}
	if got := s.texts[uri]; got != (text{1, "a\nb"}) {
		t.Errorf("the text is %+v now", got)
	}
}

func TestPositions(t *testing.T) {
	doc := text{body: "aé𝄞b\n\nteh"}
	for offset, want := range map[int]Position{
		0: {0, 0}, 1: {0, 1}, 3: {0, 2}, 7: {0, 4}, 8: {0, 5}, 9: {1, 0}, 10: {2, 0}, 13: {2, 3},
	} {
		if got := doc.position(offset); got != want {
			t.Errorf("position(%d) = %v, want %v", offset, got, want)
		}
		if got, err := doc.offset(want); got != offset || err != nil {
			t.Errorf("offset(%v) = %d, %v, want %d", want, got, err, offset)
		}
	}
	if got, err := doc.offset(Position{0, 99}); got != 8 || err != nil {
		t.Errorf("offset() past the end of a line = %d, %v, want that end", got, err)
	}
	if got := doc.find("teh"); !slices.Equal(got, []Range{{Position{2, 0}, Position{2, 3}}}) {
		t.Errorf("find() = %v", got)
	}
	for p, want := range map[Position]string{{2, 0}: "teh", {2, 2}: "teh", {2, 3}: "", {1, 0}: "", {0, 1}: "aé", {0, 2}: "", {0, 4}: "b"} {
		if got := doc.wordAt(p); got != want {
			t.Errorf("wordAt(%v) = %q, want %q", p, got, want)
		}
	}
}

// What is typed fits into any text.
func TestTyped(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var doc text
	for range 2000 {
		if err := doc.apply(typed(random, &doc)); err != nil {
			t.Fatal(err)
		}
	}
	if strings.ToValidUTF8(doc.body, "") != doc.body {
		t.Errorf("the text is no UTF-8: %q", doc.body)
	}
}

func TestChanges(t *testing.T) {
	doc := text{body: "teh teh\nteh"}
	var edits []TextEdit
	for i, at := range doc.find("teh") {
		edits = append(edits, TextEdit{at, strings.Repeat("x", i)})
	}
	edits[0], edits[2] = edits[2], edits[0] // in any order
	for _, c := range changes(edits) {
		if err := doc.apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if want := " x\nxx"; doc.body != want {
		t.Errorf("the text is %q, want %q", doc.body, want)
	}
}

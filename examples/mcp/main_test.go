package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/duetrpc/duet/examples/internal/exampletest"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

// The whole of what is shown: nothing of it depends on who is faster.
const wantScreen = `──▶ from the client to the server, ◀── from the server to the client

──▶ ping                              answered
──▶ tools/list                        answered with -32600, not initialized
──▶ initialize                        asked for 2025-11-25, agreed on 2025-11-25, with builder 1.0
──▶ logging/setLevel                  notice
──▶ tools/list                        build, deploy, watch, extend
──▶ tools/call                        build {"packages":3}
◀──   notifications/progress          1 of 3, package 1 is built
◀──   notifications/progress          2 of 3, package 2 is built
◀──   notifications/progress          3 of 3, package 3 is built
◀──   result                          3 packages are built
──▶ tools/call                        answered with -32602, Unknown tool: guess
──▶ tools/call                        build {"packages":-1}
◀──   result, an error                packages has to be a number from 1 to 9
──▶ tools/call                        deploy
◀──   elicitation/create              Where to? The user accepts with map[target:staging]
◀──   result                          deployed to staging
──▶ tools/call                        watch
◀──   notifications/progress          1, watching
──▶ notifications/cancelled           the user has seen enough
◀── notifications/message             notice of watch: "the user has seen enough", answered: false
──▶ tools/call                        extend
◀── notifications/tools/list_changed  so the client asks again
──▶ tools/list                        build, deploy, watch, extend, lint
◀──   result                          lint can be called now
──▶ tools/call                        lint
◀──   result                          no fault

matched: what was called, asked back, cancelled and refused
`

func TestSession(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	var out, log exampletest.Output
	if status := run(t.Context(), []string{"-pace", "0"}, &out, &log); status != 0 || out.String() != wantScreen || log.String() != "" {
		t.Errorf("run() = %d, want 0, nothing in the log, and another screen than\n%s%s", status, out.String(), log.String())
	}
}

// serverHalf runs the program with -listen until stop is called, which returns its
// exit status.
func serverHalf(t *testing.T) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"-listen", "127.0.0.1:0", "-pace", "0"}, w, io.Discard)
		w.Close()
	}()
	if _, err := fmt.Fscanln(r, &url); err != nil {
		t.Fatalf("the first line of stdout: %v", err)
	}
	return url, func() int {
		cancel()
		return <-status
	}
}

// A server has one session for each client.
func TestHalves(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	url, stop := serverHalf(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			var out, log exampletest.Output
			if status := run(t.Context(), []string{"-connect", url}, &out, &log); status != 0 || out.String() != wantScreen {
				t.Errorf("run(-connect) = %d, want 0, and another screen than\n%s%s", status, out.String(), log.String())
			}
		})
	}
	group.Wait()
	if status := stop(); status != 0 {
		t.Errorf("run(-listen) = %d after an interrupt, want 0", status)
	}
}

// A server that does not know what the client asks for says what it knows instead,
// and the client takes that.
func TestNegotiation(t *testing.T) {
	var out, log exampletest.Output
	status := run(t.Context(), []string{"-pace", "0", "-offer", "2099-01-01"}, &out, &log)
	if want := "asked for 2099-01-01, agreed on 2025-11-25"; status != 0 || !strings.Contains(out.String(), want) {
		t.Errorf("run() = %d, want 0 and %q\n%s%s", status, want, out.String(), log.String())
	}
}

// Whatever is under way, an interrupt ends it, and it is said why.
func TestInterrupt(t *testing.T) {
	for _, on := range []string{"──▶ ping", "notifications/progress", "elicitation/create", "notifications/cancelled", "list_changed", "no fault"} {
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
		"help":                  {[]string{"-h"}, 0, "run only the server"},
		"unknown flag":          {[]string{"-x"}, 2, "-x"},
		"argument":              {[]string{"x"}, 2, `argument "x" is not a flag`},
		"no duration":           {[]string{"-pace", "x"}, 2, `invalid value "x" for flag -pace`},
		"too slow":              {[]string{"-pace", "1h"}, 2, "-pace 1h0m0s is not in 0 to 5s"},
		"no address":            {[]string{"-listen", "x"}, 2, "-listen needs HOST:PORT: address x"},
		"an empty address":      {[]string{"-listen", ""}, 2, "-listen needs HOST:PORT"},
		"both halves":           {[]string{"-listen", ":0", "-connect", "ws://x/"}, 2, "-listen runs the server alone"},
		"an offer of a server":  {[]string{"-listen", ":0", "-offer", "x"}, 2, "-listen runs the server alone"},
		"the pace of a client":  {[]string{"-connect", "ws://x/", "-pace", "1s"}, 2, "-pace is the server's"},
		"no URL":                {[]string{"-connect", "x"}, 2, `-connect "x" is not a ws:// or wss:// URL`},
		"an empty URL":          {[]string{"-connect", ""}, 2, `-connect "" is not a ws:// or wss:// URL`},
		"another scheme":        {[]string{"-connect", "ftp://x/"}, 2, `-connect "ftp://x/" is not`},
		"an address of others":  {[]string{"-listen", "192.0.2.1:0"}, 1, "192.0.2.1:0"},
		"a number that is none": {[]string{"-listen", "127.0.0.1:99999"}, 1, "99999"},
		"nobody listens":        {[]string{"-connect", "ws://127.0.0.1:1/"}, 1, "connection refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, log exampletest.Output
			status := run(t.Context(), tt.args, &out, &log)
			if status != tt.status || !strings.Contains(log.String(), tt.stderr) || tt.status != 1 && out.String() != "" {
				t.Errorf("run(%q) = %d, want %d and %q on stderr\n%s%s", tt.args, status, tt.status, tt.stderr, out.String(), log.String())
			}
		})
	}
}

// serving runs the server's half alone. stop returns how it ended.
func serving(t *testing.T, change func(*peer.Options)) (url string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opts := newServer(0, slog.New(slog.DiscardHandler)).options(ctx)
	change(opts)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, l, opts) }()
	return address(l), func() error {
		cancel()
		return <-served
	}
}

// A server that does anything else than it should is found out.
func TestMismatch(t *testing.T) {
	// answers changes the outcome of one method.
	answers := func(method string, change func(result any, err error) (any, error)) func(*peer.Options) {
		return func(opts *peer.Options) {
			opts.Handler = peer.Chain(opts.Handler, func(next peer.Handler) peer.Handler {
				return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
					result, err := next.ServeRPC(ctx, req)
					if req.Method == method {
						return change(result, err)
					}
					return result, err
				})
			})
		}
	}
	text := func(old, new string) func(*peer.Options) {
		return answers(string(callTool), func(result any, err error) (any, error) {
			if r, ok := result.(CallToolResult); ok && len(r.Content) > 0 && r.Content[0].Text == old {
				return says("%s", new)
			}
			return result, err
		})
	}
	tests := map[string]struct {
		change func(*peer.Options)
		want   string
	}{
		"speaks something else": {
			func(opts *peer.Options) { opts.WebSocket.Subprotocols = nil },
			`the server speaks "" and not "mcp"`,
		},
		"takes calls before initialize": {
			func(opts *peer.Options) { opts.Profile.Opening = peer.Opening{} },
			"tools/list was served, and was to be refused",
		},
		"takes no ping before initialize": {
			func(opts *peer.Options) { opts.Profile.Opening.Calls = nil },
			`call "ping": `,
		},
		"wants another revision": {
			answers(string(initialize), func(any, error) (any, error) {
				return InitializeResult{ProtocolVersion: "2024-11-05"}, nil
			}),
			`the server wants revision "2024-11-05"`,
		},
		"has no log": {
			answers(string(initialize), func(any, error) (any, error) {
				return InitializeResult{ProtocolVersion: revision}, nil
			}),
			"lacks what this client needs",
		},
		"has no tools": {
			answers(string(listTools), func(any, error) (any, error) { return ListToolsResult{}, nil }),
			"the server has the tools []",
		},
		"tells nothing of its progress": {
			func(opts *peer.Options) { opts.Profile.Progress.Off = true },
			"the steps of the build were []",
		},
		"builds less":             {text("3 packages are built", "2 packages are built"), `build says "2 packages are built"`},
		"takes what does not fit": {text("packages has to be a number from 1 to 9", "-1 packages are built"), `build says "-1 packages are built"`},
		"deploys elsewhere":       {text("deployed to staging", "deployed to production"), `deploy says "deployed to production"`},
		"takes any name for a tool": {
			answers(string(callTool), func(result any, err error) (any, error) {
				if err != nil {
					return says("I guess")
				}
				return result, nil
			}),
			"tools/call was served, and was to be refused",
		},
		"does not pass the reason on": {
			func(opts *peer.Options) { opts.Profile.Cancel.Reason = "" },
			`watch ended with "", want "the user has seen enough"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defer exampletest.NoGoroutines(t)
			url, stop := serving(t, tt.change)
			err := play(t.Context(), url, newClient(revision, io.Discard), slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("play() = %v, want %q", err, tt.want)
			}
			if err := stop(); err != nil {
				t.Errorf("serve() = %v", err)
			}
		})
	}
}

// An answer to what was cancelled is ignored, and shown.
func TestLateAnswer(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	url, stop := serving(t, func(opts *peer.Options) { opts.Profile.Cancel.Silent = false })
	var out exampletest.Output
	err := play(t.Context(), url, newClient(revision, &out), slog.New(slog.DiscardHandler))
	if want := `"the user has seen enough", answered: true`; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("play() = %v, want nil and %q\n%s", err, want, out.String())
	}
	if err := stop(); err != nil {
		t.Errorf("serve() = %v", err)
	}
}

// A client that is not told of one more tool waits to be told.
func TestNotTold(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	url, stop := serving(t, func(opts *peer.Options) {
		opts.Outgoing = append(opts.Outgoing, func(c peer.Caller) peer.Caller { return quiet{c, string(toolsChanged)} })
	})
	ctx, interrupt := context.WithCancelCause(t.Context())
	out := &exampletest.Output{On: "lint can be called now", Do: func() { interrupt(errors.New("stop it")) }}
	err := play(ctx, url, newClient(revision, out), slog.New(slog.DiscardHandler))
	if err == nil || err.Error() != "stop it" || strings.Contains(out.String(), "no fault") {
		t.Errorf("play() = %v, want that the client waits\n%s", err, out.String())
	}
	if err := stop(); err != nil {
		t.Errorf("serve() = %v", err)
	}
}

// quiet is a caller that does not send some notifications.
type quiet struct {
	peer.Caller
	kind string
}

func (q quiet) Notify(ctx context.Context, method string, params any) error {
	if method == q.kind {
		return nil
	}
	return q.Caller.Notify(ctx, method, params)
}

// dialled is another client than ours, with an open session.
func dialled(t *testing.T, url string, opts *peer.Options, able ClientCapabilities) *peer.Conn {
	t.Helper()
	opts.Profile = profile.MCP20251125()
	conn, err := peer.Dial(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		<-conn.Done()
	})
	if _, err := initialize.Call(t.Context(), conn, InitializeParams{ProtocolVersion: revision, Capabilities: able}); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestDeploy(t *testing.T) {
	able := ClientCapabilities{Elicitation: &ElicitationCapability{Form: &struct{}{}}}
	pages := ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}
	broken := &peer.Error{Code: 7, Message: "no screen"}
	tests := map[string]struct {
		able   ClientCapabilities
		answer ElicitResult
		err    error
		want   string
	}{
		"the user says yes":     {able, ElicitResult{Action: "accept", Content: map[string]string{"target": "x"}}, nil, "deployed to x"},
		"the user says no":      {able, ElicitResult{Action: "decline"}, nil, "not deployed: the user chose to decline"},
		"nobody is asked":       {ClientCapabilities{}, ElicitResult{}, nil, "the client cannot ask its user, so nothing is deployed"},
		"nobody has a form":     {pages, ElicitResult{}, nil, "the client cannot ask its user, so nothing is deployed"},
		"the question is stuck": {able, ElicitResult{}, broken, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			url, stop := serving(t, func(*peer.Options) {})
			defer stop()
			var reg peer.Registry
			elicit.Handle(&reg, func(context.Context, ElicitParams) (ElicitResult, error) { return tt.answer, tt.err })
			conn := dialled(t, url, &peer.Options{Handler: &reg}, tt.able)
			out, err := callTool.Call(t.Context(), conn, CallToolParams{Name: "deploy"})
			if tt.err != nil {
				if !errors.Is(err, tt.err) {
					t.Errorf("deploy = %v, want %v", err, tt.err)
				}
				return
			}
			if err != nil || len(out.Content) != 1 || out.Content[0].Text != tt.want || out.IsError != (tt.answer.Action != "accept") {
				t.Errorf("deploy = %+v, %v, want %q", out, err, tt.want)
			}
		})
	}
}

// A server that is interrupted says so to who waits for a tool.
func TestServerEnds(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	url, stop := serverHalf(t)
	conn := dialled(t, url, &peer.Options{}, ClientCapabilities{})
	status := make(chan int, 1)
	out, err := callTool.Call(t.Context(), conn, CallToolParams{Name: "watch"}, peer.OnProgress(func(peer.Progress) {
		go func() { status <- stop() }()
	}))
	if want := "watch was given up: context canceled"; err != nil || !out.IsError || len(out.Content) != 1 || out.Content[0].Text != want {
		t.Errorf("watch = %+v, %v, want %q", out, err, want)
	}
	if got := <-status; got != 0 {
		t.Errorf("run(-listen) = %d after an interrupt, want 0", got)
	}
	<-conn.Done()
}

func TestServerRefuses(t *testing.T) {
	url, stop := serving(t, func(*peer.Options) {})
	defer stop()
	conn := dialled(t, url, &peer.Options{}, ClientCapabilities{})
	for method, call := range map[string]func() error{
		string(setLevel):  func() error { _, err := setLevel.Call(t.Context(), conn, SetLevelParams{"loud"}); return err },
		string(listTools): func() error { _, err := listTools.Call(t.Context(), conn, ListToolsParams{"2"}); return err },
		string(callTool):  func() error { _, err := callTool.Call(t.Context(), conn, CallToolParams{}); return err },
	} {
		if err := call(); !errors.Is(err, &peer.Error{Code: peer.InvalidParams}) {
			t.Errorf("%s = %v, want code %d", method, err, peer.InvalidParams)
		}
	}
}

// A question that is no choice is not answered in the user's name.
func TestElicit(t *testing.T) {
	c := newClient(revision, io.Discard)
	in := ElicitParams{RequestedSchema: Schema{Properties: map[string]Property{"password": {Type: "string"}}}}
	if got, err := c.elicit(t.Context(), in); err != nil || got.Action != "decline" {
		t.Errorf("elicit() = %+v, %v, want that the user declines", got, err)
	}
}

// Only what the client wants to see of the log is sent.
func TestLevel(t *testing.T) {
	s := newServer(0, slog.New(slog.DiscardHandler)).session()
	for level, want := range map[string]int{"debug": 1, "notice": 1, "warning": 0, "emergency": 0} {
		if _, err := s.setLevel(t.Context(), SetLevelParams{level}); err != nil {
			t.Fatal(err)
		}
		var sent counter
		if err := s.logs(t.Context(), &sent, LogMessage{Level: "notice"}); err != nil || int(sent) != want {
			t.Errorf("at level %q logs() sent %d, %v, want %d", level, sent, err, want)
		}
	}
}

// counter is a caller that counts notifications.
type counter int

func (c *counter) Call(context.Context, string, any, any, ...peer.CallOption) error { return nil }
func (c *counter) Notify(context.Context, string, any) error                        { *c++; return nil }

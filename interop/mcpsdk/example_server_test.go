//lint:file-ignore SA1019 MCP 2025-11-25 has a log; the SDK looks ahead to a revision without

package mcpsdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/interop/mcpsdk"
	"github.com/duetrpc/duet/wsconn"
)

// The client finds in the SDK's server what it finds in its own, but for what is its
// server's to choose: on its screen they differ in these lines.
func testExampleClient(t *testing.T, program string) {
	for _, offer := range []string{revision, "2024-10-07"} { // neither end knows the second
		t.Run("asks for "+offer, func(t *testing.T) {
			b := newBuilder(t)
			status, screen, log := runExample(t, program, "-offer", offer, "-connect", b.url)
			if status != 0 || log != "" || !strings.Contains(screen, "\nmatched: ") {
				t.Fatalf("exit status %d, want 0, nothing in the log, and matched\n%s%s", status, screen, log)
			}
			if err := receive(t, "the end of the session", b.ended); err != nil {
				t.Errorf("the session ended with %v, want nil", err)
			}
			_, own, _ := runExample(t, program, "-offer", offer, "-pace", "0")
			var departs []string
			for line := range strings.Lines(screen) { // in any order: the SDK tells of its tools by a timer
				if !strings.Contains(own, line) {
					departs = append(departs, strings.Join(strings.Fields(line), " "))
				}
			}
			want := []string{
				`──▶ tools/list answered with 0, method "tools/list" is invalid during session initialization`,
				`──▶ tools/list build, deploy, extend, watch`,
				`──▶ tools/call answered with -32602, unknown tool "guess"`,
				`◀── notifications/message notice of watch: "the user has seen enough", answered: true`,
				`──▶ tools/list build, deploy, extend, lint, watch`,
			}
			if !slices.Equal(departs, want) || strings.Count(screen, "\n") != strings.Count(own, "\n") {
				t.Errorf("the SDK departs in\n%s\nwant\n%s", strings.Join(departs, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	t.Run("asks for 2026-07-28", func(t *testing.T) { // the SDK goes by that, whatever was agreed on
		b := newBuilder(t)
		status, screen, log := runExample(t, program, "-offer", "2026-07-28", "-connect", b.url)
		const want = "cannot be sent while serving a request on protocol version 2026-07-28"
		if status != 1 || !strings.Contains(log, want) {
			t.Errorf("exit status %d, want 1 and %q\n%s%s", status, want, screen, log)
		}
		if err := receive(t, "the end of the session", b.ended); err != nil {
			t.Errorf("the session ended with %v, want nil", err)
		}
	})
}

// runExample runs the program to its end.
func runExample(t *testing.T, program string, args ...string) (status int, screen, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, logged bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), strings.ReplaceAll(logged.String(), `\"`, `"`)
}

// builder is the example's server once more, made of the SDK.
type builder struct {
	*mcp.Server
	url     string
	ended   chan error  // how the session ended
	reasons chan string // why a call was cancelled
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	b := &builder{
		Server: mcp.NewServer(&mcp.Implementation{Name: "builder", Version: "1.0"}, nil),
		ended:  make(chan error, 1), reasons: make(chan string, 1),
	}
	b.AddReceivingMiddleware(b.hear)
	b.add("build", build)
	b.add("deploy", deploy)
	b.add("watch", b.watch)
	b.add("extend", b.extend)
	b.url = listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := wsconn.Accept(w, r, &socketOptions)
		if err == nil {
			err = b.Run(r.Context(), mcpsdk.New(ws))
		}
		b.ended <- err
	}))
	return b
}

// add adds a tool that answers a text.
func (b *builder) add(name string, run func(context.Context, *mcp.CallToolRequest) (string, error)) {
	b.AddTool(&mcp.Tool{Name: name, InputSchema: object{"type": "object"}},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := run(ctx, req)
			if err != nil {
				text = err.Error()
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: err != nil}, nil
		})
}

func report(ctx context.Context, req *mcp.CallToolRequest, done, total int, message string) error {
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: req.Params.GetProgressToken(), Progress: float64(done), Total: float64(total), Message: message,
	})
}

func build(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
	var in struct{ Packages int }
	err := json.Unmarshal(req.Params.Arguments, &in)
	if in.Packages < 1 || in.Packages > 9 {
		err = errors.New("packages has to be a number from 1 to 9")
	}
	for n := 0; n < in.Packages && err == nil; n++ {
		err = report(ctx, req, n+1, in.Packages, fmt.Sprintf("package %d is built", n+1))
	}
	return fmt.Sprintf("%d packages are built", in.Packages), err
}

func deploy(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
	target := object{"type": "string", "enum": []string{"staging", "production"}}
	form := object{"type": "object", "properties": object{"target": target}, "required": []string{"target"}}
	got, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Where to?", RequestedSchema: form})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("deployed to %v", got.Content["target"]), nil
}

func (b *builder) watch(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
	if err := report(ctx, req, 1, 0, "watching"); err != nil {
		return "", err
	}
	<-ctx.Done()
	return "nobody reads this", req.Session.Log(context.WithoutCancel(ctx), &mcp.LoggingMessageParams{
		Level: "notice", Logger: "watch", Data: object{"reason": <-b.reasons, "answered": true}, // the SDK does it in any case
	})
}

func (b *builder) extend(context.Context, *mcp.CallToolRequest) (string, error) {
	b.add("lint", func(context.Context, *mcp.CallToolRequest) (string, error) { return "no fault", nil })
	return "lint can be called now", nil
}

// hear is middleware that hears why a call was cancelled, which the SDK does not tell
// its handler.
func (b *builder) hear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if gone, ok := req.GetParams().(*mcp.CancelledParams); ok {
			b.reasons <- gone.Reason
		}
		return next(ctx, method, req)
	}
}

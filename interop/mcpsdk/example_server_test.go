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
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// What a server made of the SDK does otherwise than the example's client wants it.
const (
	codeNought = "refuses what comes before initialize with the code 0"
	byName     = "lists its tools by name"
	answers    = "answers what was cancelled"
	admits     = "answers what was cancelled, and says so"
	tellsLate  = "answers first, and then tells of its tools"
	forgets    = "goes by the revision that was asked for, whatever was agreed on"

	noCode = `"error":{"code":0,` // in what it writes then
	unread = "nobody reads this"
)

// Where what is listed above is mended, the client finds in the SDK's server what it
// finds in its own: on its screen they differ in the wording of two errors.
func testExampleClient(t *testing.T, program string) {
	for _, offer := range []string{revision, "2024-10-07"} { // neither end knows the second
		t.Run("asks for "+offer, func(t *testing.T) {
			b, status, screen, log := visit(t, program, offer, "")
			if status != 0 || log != "" || !strings.Contains(screen, "\nmatched: ") {
				t.Fatalf("exit status %d, want 0, nothing in the log, and matched\n%s%s", status, screen, log)
			}
			_, own, _ := runExample(t, program, "-offer", offer, "-pace", "0")
			words := strings.NewReplacer("Unknown tool: guess", `unknown tool "guess"`,
				"not initialized", `method "tools/list" is invalid during session initialization`)
			if want := words.Replace(own); screen != want {
				t.Errorf("the screen is\n%swant\n%s", screen, want)
			}
			mended := []string{
				`{"jsonrpc":"2.0","id":2,"error":{"code":0,"message":"method \"tools/list\" is invalid during session initialization"}}`,
				`{"jsonrpc":"2.0","id":10,"result":{"content":[{"type":"text","text":"nobody reads this"}]}}`,
			}
			if got := append(b.wire.wrote(noCode), b.wire.wrote(unread)...); !slices.Equal(got, mended) {
				t.Errorf("mended: %q, want %q", got, mended)
			}
		})
	}
	for left, want := range map[string]string{ // what the client says of each
		codeNought: `was to be refused with -32600: peer: call "tools/list": jsonrpc error 0`,
		byName:     `the server has the tools ["build" "deploy" "extend" "watch"], want ["build" "deploy" "watch" "extend"]`,
		answers:    "1 of what never became an answer: " + peer.LateResponse.String(),
		admits:     "the server says that watch ended with {Reason:the user has seen enough Answered:true}",
		tellsLate:  `the server has the tools ["build" "deploy" "watch" "extend"], want ["build" "deploy" "watch" "extend" "lint"]`,
		forgets:    "cannot be sent while serving a request on protocol version 2026-07-28",
	} {
		t.Run(left, func(t *testing.T) {
			offer := revision
			if left == forgets {
				offer = "2026-07-28"
			}
			_, status, screen, log := visit(t, program, offer, left)
			if status != 1 || !strings.Contains(log, want) || strings.Contains(screen, "matched") {
				t.Errorf("exit status %d, want 1 and %q\n%s%s", status, want, screen, log)
			}
		})
	}
}

// visit runs the client, with a builder, until both ends have ended.
func visit(t *testing.T, program, offer, left string) (b *builder, status int, screen, log string) {
	t.Helper()
	b = newBuilder(t, left)
	status, screen, log = runExample(t, program, "-offer", offer, "-connect", b.url)
	err := receive(t, "the end of the session", b.ended)
	if err != nil && left != admits { // the client does not stay for that answer
		t.Errorf("the session ended with %v, want nil", err)
	}
	return b, status, screen, log
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

// builder is the example's server once more, made of the SDK. What the SDK does
// otherwise is mended on its way out, but for the one that is left.
type builder struct {
	*mcp.Server
	left     string
	url      string
	wire     *tapped       // has what the SDK wrote
	ended    chan error    // how the session ended
	reasons  chan string   // why a call was cancelled
	answered chan struct{} // the SDK has answered it
	told     chan struct{} // the SDK has told of its tools
}

func newBuilder(t *testing.T, left string) *builder {
	t.Helper()
	b := &builder{
		Server: mcp.NewServer(&mcp.Implementation{Name: "builder", Version: "1.0"}, nil),
		left:   left, ended: make(chan error, 1), reasons: make(chan string, 1),
		answered: make(chan struct{}, 1), told: make(chan struct{}, 1),
	}
	b.AddReceivingMiddleware(b.mend)
	b.AddSendingMiddleware(b.mend)
	b.add("build", build)
	b.add("deploy", deploy)
	b.add("watch", b.watch)
	b.add("extend", b.extend)
	b.url = listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := wsconn.Accept(w, r, &socketOptions)
		if err == nil {
			b.wire = &tapped{Transport: &mended{ws, b}}
			err = b.Run(r.Context(), mcpsdk.New(b.wire))
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
	return unread, req.Session.Log(context.WithoutCancel(ctx), &mcp.LoggingMessageParams{
		Level: "notice", Logger: "watch", Data: object{"reason": <-b.reasons, "answered": b.left == admits},
	})
}

func (b *builder) extend(context.Context, *mcp.CallToolRequest) (string, error) {
	<-b.answered // late, but not so late that the client has gone
	b.add("lint", func(context.Context, *mcp.CallToolRequest) (string, error) { return "no fault", nil })
	if b.left != tellsLate {
		<-b.told
	}
	return "lint can be called now", nil
}

// mend is middleware. It hears why a call was cancelled, which the SDK does not tell
// the handler; puts the tools in the order in which they were added; and knows when
// the SDK tells of them, a while after AddTool has returned.
func (b *builder) mend(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == string(toolsChanged) && b.left == tellsLate {
			return nil, nil // so late that the client has gone
		}
		if gone, ok := req.GetParams().(*mcp.CancelledParams); ok {
			b.reasons <- gone.Reason
		}
		out, err := next(ctx, method, req)
		if method == string(toolsChanged) {
			b.told <- struct{}{}
		}
		if list, ok := out.(*mcp.ListToolsResult); ok && b.left != byName {
			order := []string{"build", "deploy", "watch", "extend", "lint"}
			slices.SortFunc(list.Tools, func(x, y *mcp.Tool) int { return slices.Index(order, x.Name) - slices.Index(order, y.Name) })
		}
		return out, err
	}
}

// mended is a transport, for what the SDK lets nobody change any earlier.
type mended struct {
	peer.Transport
	b *builder
}

func (m *mended) Write(ctx context.Context, msgs ...[]byte) error {
	for _, msg := range msgs {
		if m.b.left != codeNought {
			msg = bytes.Replace(msg, []byte(noCode), []byte(`"error":{"code":-32600,`), 1)
		}
		late := bytes.Contains(msg, []byte(unread))
		if !late || m.b.left == answers || m.b.left == admits {
			if err := m.Transport.Write(ctx, msg); err != nil {
				return err
			}
		}
		if late {
			m.b.answered <- struct{}{}
		}
	}
	return nil
}

//lint:file-ignore SA1019 MCP 2025-11-25 has a log; the SDK looks ahead to a revision without

package mcpsdk_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/interop/mcpsdk"
	"github.com/duetrpc/duet/wsconn"
)

// Each half of examples/mcp, as a process, has the SDK for the other half.
func TestExample(t *testing.T) {
	program := filepath.Join(t.TempDir(), "mcp")
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience) // the library may have to be compiled too
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./examples/mcp")
	build.Dir = filepath.Join("..", "..") // the module it is in
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	t.Run("server", func(t *testing.T) { testExampleServer(t, program) })
	t.Run("client", func(t *testing.T) { testExampleClient(t, program) })
}

func testExampleServer(t *testing.T, program string) {
	url, stop := serveExample(t, program)
	for _, offer := range []string{"2024-11-05", "2026-07-28"} { // the server knows neither, the SDK both
		t.Run("asked for "+offer, func(t *testing.T) { useExample(t, url, offer).starts(t) })
	}
	c := useExample(t, url, revision)
	t.Run("start", c.starts)
	t.Run("build", c.builds)
	t.Run("mistake", c.mistakes)
	t.Run("deploy", c.deploys)
	t.Run("watch", c.watches)
	t.Run("extend", c.extends)
	stop()
	if err := c.Wait(); err != nil {
		t.Errorf("Wait() = %v, want nil", err)
	}
	// All that the server had to say has been read.
	call := c.wire.wrote(`"name":"watch"`)
	if len(call) != 1 {
		t.Fatalf("watch was called with %q", call)
	} else if got := c.wire.received(`"id":` + idOf(t, call[0]) + `,`); len(got) != 0 {
		t.Errorf("the cancelled call was answered with %q", got)
	}
}

// serveExample runs the server. stop interrupts it, and wants it to end in order.
func serveExample(t *testing.T, program string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := exec.CommandContext(ctx, program, "-listen", "127.0.0.1:0", "-pace", "0")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // where stop has not
	})
	screen := bufio.NewScanner(out)
	if !screen.Scan() {
		t.Fatalf("the server printed no address: %v", screen.Err())
	}
	return screen.Text(), func() {
		t.Helper()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		more := screen.Scan()
		if err := cmd.Wait(); err != nil || more {
			t.Errorf("interrupted, the server ended with %v, want exit status 0 and nothing but an address, not %q\n%s", err, screen.Text(), &log)
		}
	}
}

// exampleUser is a session of the SDK's client with the example's server. Where the
// server hangs it is killed, and every call fails.
type exampleUser struct {
	*mcp.ClientSession
	wire     *tapped
	asked    chan *mcp.ElicitParams
	progress chan *mcp.ProgressNotificationParams
	logged   chan *mcp.LoggingMessageParams
	changed  chan struct{}
}

// useExample opens a session. It asks for the revision offer.
func useExample(t *testing.T, url, offer string) *exampleUser {
	t.Helper()
	c := &exampleUser{
		asked:    make(chan *mcp.ElicitParams, 1),
		progress: make(chan *mcp.ProgressNotificationParams, 3),
		logged:   make(chan *mcp.LoggingMessageParams, 1),
		changed:  make(chan struct{}, 1),
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk client", Version: "2"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.asked <- req.Params
			return &mcp.ElicitResult{Action: "accept", Content: object{"target": "production"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { c.progress <- req.Params },
		LoggingMessageHandler:       func(_ context.Context, req *mcp.LoggingMessageRequest) { c.logged <- req.Params },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	socket, _, err := wsconn.Dial(t.Context(), url, &socketOptions)
	if err != nil || socket.Subprotocol() != mcpsdk.Subprotocol {
		t.Fatalf("Dial() = %v, want nil, and a server that speaks %q", err, mcpsdk.Subprotocol)
	}
	t.Cleanup(func() { _ = socket.Close(nil) })
	c.wire = &tapped{Transport: socket}
	c.ClientSession, err = client.Connect(t.Context(), mcpsdk.New(c.wire), &mcp.ClientSessionOptions{ProtocolVersion: offer})
	if err != nil {
		t.Fatalf("Connect() = %v", err)
	}
	return c
}

func (c *exampleUser) starts(t *testing.T) {
	got := c.InitializeResult()
	if got.ProtocolVersion != revision || got.ServerInfo.Name != "builder" || got.ServerInfo.Version != "1.0" {
		t.Errorf("InitializeResult() = %+v, %+v, want revision %s, of builder 1.0", got, got.ServerInfo, revision)
	}
	if able := got.Capabilities; able.Logging == nil || able.Tools == nil || !able.Tools.ListChanged {
		t.Errorf("capabilities %+v, want a log, and tools that change", able)
	}
	c.wantTools(t, "build", "deploy", "watch", "extend")
}

// wantTools wants these tools to be listed, in this order.
func (c *exampleUser) wantTools(t *testing.T, want ...string) {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatalf("tools/list: %v", err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("tools/list = %q, want %q", names, want)
	}
}

// call calls a tool, and asks for its progress.
func (c *exampleUser) call(ctx context.Context, name string, args object) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(name)
	return c.CallTool(ctx, params)
}

// wantText wants a tool to say that, and whether it is an error.
func (c *exampleUser) wantText(t *testing.T, name string, args object, want string, failed bool) {
	t.Helper()
	got, err := c.call(t.Context(), name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !reflect.DeepEqual(got.Content, []mcp.Content{&mcp.TextContent{Text: want}}) || got.IsError != failed {
		t.Errorf("%s = %+v, want %q, an error: %t", name, got, want, failed)
	}
}

// wantProgress wants the next report to be this, of that tool.
func (c *exampleUser) wantProgress(t *testing.T, name string, done, total float64, message string) {
	t.Helper()
	got := receive(t, "progress", c.progress)
	if got.ProgressToken != name || got.Progress != done || got.Total != total || got.Message != message {
		t.Errorf("progress = %+v, want %v of %v of %s, %q", got, done, total, name, message)
	}
}

func (c *exampleUser) builds(t *testing.T) {
	c.wantText(t, "build", object{"packages": 2}, "2 packages are built", false)
	c.wantProgress(t, "build", 1, 2, "package 1 is built")
	c.wantProgress(t, "build", 2, 2, "package 2 is built")
}

func (c *exampleUser) mistakes(t *testing.T) {
	c.wantText(t, "build", object{"packages": -1}, "packages has to be a number from 1 to 9", true)
	_, err := c.call(t.Context(), "guess", nil)
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams || wire.Message != "Unknown tool: guess" {
		t.Errorf("guess = %v, want code %d", err, jsonrpc.CodeInvalidParams)
	}
}

// The client answers a question while its call is open.
func (c *exampleUser) deploys(t *testing.T) {
	c.wantText(t, "deploy", nil, "deployed to production", false)
	got := receive(t, "the question", c.asked)
	target := object{"type": "string", "enum": []any{"staging", "production"}}
	want := object{"type": "object", "properties": object{"target": target}, "required": []any{"target"}}
	if got.Message != "Where to?" || !reflect.DeepEqual(got.RequestedSchema, any(want)) {
		t.Errorf("elicitation/create = %+v, want the schema %v", got, want)
	}
}

// The server's handler stops, and says why.
func (c *exampleUser) watches(t *testing.T) {
	if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "notice"}); err != nil {
		t.Fatalf("SetLoggingLevel() = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.call(ctx, "watch", nil)
		done <- err
	}()
	c.wantProgress(t, "watch", 1, 0, "watching")
	cancel()
	if err := receive(t, "the call returns", done); !errors.Is(err, context.Canceled) {
		t.Errorf("watch = %v, want context.Canceled", err)
	}
	got, want := receive(t, "the log", c.logged), object{"reason": "context canceled", "answered": false}
	if got.Level != "notice" || got.Logger != "watch" || !reflect.DeepEqual(got.Data, any(want)) {
		t.Errorf("notifications/message = %+v, want a notice of watch, %v", got, want)
	}
}

func (c *exampleUser) extends(t *testing.T) {
	c.wantText(t, "extend", nil, "lint can be called now", false)
	receive(t, "tools/list_changed", c.changed)
	c.wantTools(t, "build", "deploy", "watch", "extend", "lint")
	c.wantText(t, "lint", nil, "no fault", false)
}

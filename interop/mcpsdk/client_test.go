package mcpsdk_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK is the client, duet the server.

func TestSDKClientHandshake(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	got := c.InitializeResult()
	if got.ProtocolVersion != revision || got.ServerInfo.Name != "duet server" || !got.Capabilities.Tools.ListChanged {
		t.Errorf("InitializeResult() = %+v", got)
	}
	in, want := c.greeting, implementation{"sdk client", "2"}
	if in.ProtocolVersion != revision || in.ClientInfo != want || in.Capabilities["elicitation"] == nil {
		t.Errorf("initialize came with %+v", in.initializeParams)
	}
	receive(t, "notifications/initialized", s.initialized)
	if a, b := c.socket.Subprotocol(), c.conn.Subprotocol(); a != "mcp" || b != "mcp" {
		t.Errorf("subprotocols %q and %q, want mcp", a, b)
	}
	if err := c.Ping(t.Context(), nil); err != nil {
		t.Errorf("Ping() = %v", err)
	}
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatalf("ListTools() = %v", err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, toolNames) {
		t.Errorf("ListTools() = %q, want %q", names, toolNames)
	}
	wantNoOddities(t, c.conn)
}

// A client that would rather speak a revision without a handshake asks with
// server/discover first; the error it gets leads it back.
func TestSDKClientFallsBack(t *testing.T) {
	s := newDuetServer(t)
	c := connect(t, s, nil)
	if got := c.InitializeResult().ProtocolVersion; got != revision {
		t.Errorf("revision %q, want %q", got, revision)
	}
	if got := c.wire.wrote(`"method":"server/discover"`); len(got) != 1 {
		t.Errorf("sent %q, want one server/discover", got)
	}
	if got, err := callText(t.Context(), c.ClientSession, "add", arguments{A: 1, B: 2}); got != "3" {
		t.Errorf("add = %q, %v, want 3", got, err)
	}
}

func TestSDKClientTool(t *testing.T) {
	c := session(t, newDuetServer(t))
	if got, err := callText(t.Context(), c.ClientSession, "add", arguments{A: 40, B: 2}); got != "42" {
		t.Errorf("add = %q, %v, want 42", got, err)
	}
}

func TestSDKClientErrors(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	_, err := callText(t.Context(), c.ClientSession, "fail", arguments{})
	var luckless *jsonrpc.Error
	if !errors.As(err, &luckless) || luckless.Code != lucklessCode ||
		luckless.Message != lucklessMessage || string(luckless.Data) != lucklessData {
		t.Errorf("fail = %v (%+v)", err, luckless)
	}
	_, unknownTool := callText(t.Context(), c.ClientSession, "none", arguments{})
	_, unknownMethod := c.ListPrompts(t.Context(), nil)
	_, wrongType := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: object{"a": "one"}})
	for what, tc := range map[string]struct {
		err  error
		code int64
	}{
		"unknown tool":   {unknownTool, jsonrpc.CodeInvalidParams},
		"unknown method": {unknownMethod, jsonrpc.CodeMethodNotFound},
		"wrong type":     {wrongType, jsonrpc.CodeInvalidParams},
	} {
		var wire *jsonrpc.Error
		if !errors.As(tc.err, &wire) || wire.Code != tc.code {
			t.Errorf("%s: %v (%+v), want code %d", what, tc.err, wire, tc.code)
		}
	}
	if err := c.Ping(t.Context(), nil); err != nil {
		t.Errorf("Ping() after errors = %v", err)
	}
}

func TestSDKClientNotifications(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	if err := toolsChanged.Notify(t.Context(), c.conn, struct{}{}); err != nil {
		t.Fatal(err)
	}
	receive(t, "tools/list_changed at the client", c.changed)

	p := &mcp.ProgressNotificationParams{ProgressToken: "up", Progress: 0.5, Message: "half"}
	if err := c.NotifyProgress(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	got := receive(t, "progress at the server", s.progress)
	if string(got.ProgressToken) != `"up"` || got.Progress != 0.5 || got.Message != "half" {
		t.Errorf("progress = %+v", got)
	}
}

// The tool asks the client, which asks a tool in turn: three calls, each open while
// the next one runs, in alternating directions.
func TestSDKClientIsAsked(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	if got, err := callText(t.Context(), c.ClientSession, "ask", arguments{}); got != "accept 42" {
		t.Errorf("ask = %q, %v, want accept 42", got, err)
	}
	if got := c.wire.received(`"method":"elicitation/create"`); len(got) != 1 {
		t.Errorf("the client was asked %d times, want once: %q", len(got), got)
	}
	wantNoOddities(t, c.conn)
}

func TestSDKClientUnordered(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	s.unordered(t, func(ctx context.Context, n int) (string, error) {
		return callText(ctx, c.ClientSession, "hold", arguments{N: n})
	})
	wantNoOddities(t, c.conn)
}

func TestSDKClientSeesTheEnd(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("Wait() = %v, want nil", err)
	}
	err := c.Ping(t.Context(), nil)
	if !errors.Is(err, mcp.ErrConnectionClosed) || !strings.Contains(err.Error(), "1001 going away") {
		t.Errorf("Ping() = %v, want %v, with the close code", err, mcp.ErrConnectionClosed)
	}
}

func TestSDKClientEnds(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	if err := c.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	receive(t, "the end of the connection", c.conn.Done())
	wantNoOddities(t, c.conn)
}

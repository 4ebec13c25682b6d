package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/duetrpc/duet/interop/mcpsdk"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// The SDK is the server, duet the client.

func TestSDKServerHandshake(t *testing.T) {
	s := newSDKServer(t)
	c := dial(t, s)
	got, want := c.handshake(t), implementation{"sdk server", "3"}
	if got.ProtocolVersion != revision || got.ServerInfo != want || got.Capabilities["tools"] == nil {
		t.Errorf("initialize = %+v", got)
	}
	receive(t, "notifications/initialized", s.initialized)
	in := c.session.InitializeParams()
	if in.ProtocolVersion != revision || in.ClientInfo.Name != "duet client" || in.Capabilities.Elicitation.Form == nil {
		t.Errorf("initialize came with %+v", in)
	}
	if got := c.Subprotocol(); got != "mcp" {
		t.Errorf("Subprotocol() = %q, want mcp", got)
	}
	if _, err := ping.Call(t.Context(), c, struct{}{}); err != nil {
		t.Errorf("ping: %v", err)
	}
	list, err := listTools.Call(t.Context(), c, struct{}{})
	if err != nil {
		t.Fatalf("tools/list: %v", err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, toolNames) {
		t.Errorf("tools/list = %q, want %q", names, toolNames)
	}
	wantNoOddities(t, c.Conn)
}

// Before initialize the server answers ping, and refuses anything else with an
// error of its own making, which a client must be able to read.
func TestSDKServerBeforeHandshake(t *testing.T) {
	c := dial(t, newSDKServer(t))
	if _, err := ping.Call(t.Context(), c, struct{}{}); err != nil {
		t.Errorf("ping: %v", err)
	}
	_, err := listTools.Call(t.Context(), c, struct{}{})
	var wire *peer.Error
	const want = `method "tools/list" is invalid during session initialization`
	if !errors.As(err, &wire) || wire.Code != 0 || wire.Message != want {
		t.Errorf("tools/list: %v", err)
	}
	c.handshake(t)
	if got, err := c.tool(t.Context(), "add", arguments{A: 1, B: 2}); got != "3" {
		t.Errorf("add = %q, %v, want 3", got, err)
	}
}

func TestSDKServerTool(t *testing.T) {
	c := greet(t, newSDKServer(t))
	if got, err := c.tool(t.Context(), "add", arguments{A: 40, B: 2}); got != "42" {
		t.Errorf("add = %q, %v, want 42", got, err)
	}
}

func TestSDKServerErrors(t *testing.T) {
	c := greet(t, newSDKServer(t))
	_, err := c.tool(t.Context(), "fail", arguments{})
	var luckless *peer.Error
	if !errors.As(err, &luckless) || luckless.Code != lucklessCode ||
		luckless.Message != lucklessMessage || string(luckless.Data) != lucklessData {
		t.Errorf("fail = %v (%+v)", err, luckless)
	}
	got, err := callTool.Call(t.Context(), c, toolCall{Name: "fail", Arguments: arguments{N: 1}})
	if err != nil || !got.IsError || got.text() != "tool failed" {
		t.Errorf("fail with 1 = %+v, %v, want a result that says it failed", got, err)
	}
	_, unknownTool := c.tool(t.Context(), "none", arguments{})
	for what, tc := range map[string]struct {
		err  error
		code peer.Code
	}{
		"unknown tool":   {unknownTool, peer.InvalidParams},
		"unknown method": {c.Call(t.Context(), "tools/none", nil, nil), peer.MethodNotFound},
		"wrong type":     {c.Call(t.Context(), "tools/call", object{"name": 1}, nil), peer.InvalidParams},
	} {
		var wire *peer.Error
		if !errors.As(tc.err, &wire) || wire.Code != tc.code {
			t.Errorf("%s: %v, want code %d", what, tc.err, tc.code)
		}
	}
	if _, err := ping.Call(t.Context(), c, struct{}{}); err != nil {
		t.Errorf("ping after errors: %v", err)
	}
}

func TestSDKServerNotifications(t *testing.T) {
	s := newSDKServer(t)
	c := greet(t, s)
	s.RemoveTools("add")
	receive(t, "tools/list_changed at the client", c.changed)

	p := progress{json.RawMessage(`"up"`), 0.5, 0, "half"}
	if err := progressed.Notify(t.Context(), c, p); err != nil {
		t.Fatal(err)
	}
	got := receive(t, "progress at the server", s.progress)
	if got.ProgressToken != "up" || got.Progress != 0.5 || got.Message != "half" {
		t.Errorf("progress = %+v", got)
	}
	wantNoOddities(t, c.Conn)
}

// The tool asks the client, which calls a tool in turn: three calls, each open while
// the next one runs, in alternating directions.
func TestSDKServerAsks(t *testing.T) {
	c := greet(t, newSDKServer(t))
	if got, err := c.tool(t.Context(), "ask", arguments{}); got != "accept 42" {
		t.Errorf("ask = %q, %v, want accept 42", got, err)
	}
	if got := c.Stats().Methods["elicitation/create"].Calls; got != 1 {
		t.Errorf("the client was asked %d times, want once", got)
	}
	wantNoOddities(t, c.Conn)
}

func TestSDKServerUnordered(t *testing.T) {
	s := newSDKServer(t)
	c := greet(t, s)
	s.unordered(t, func(ctx context.Context, n int) (string, error) {
		return c.tool(ctx, "hold", arguments{N: n})
	})
	wantNoOddities(t, c.Conn)
}

func TestSDKServerSeesTheEnd(t *testing.T) {
	c := greet(t, newSDKServer(t))
	if err := c.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
	if err := c.session.Wait(); err != nil {
		t.Errorf("Wait() = %v, want nil", err)
	}
}

func TestSDKServerEnds(t *testing.T) {
	c := greet(t, newSDKServer(t))
	if err := c.session.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	receive(t, "the end of the connection", c.Done())
	wantNoOddities(t, c.Conn)
	var closed *peer.CloseError
	if err := c.Call(t.Context(), "ping", nil, nil); !errors.As(err, &closed) || closed.Code != 1000 {
		t.Errorf("ping after the end: %v, want close code 1000", err)
	}
}

// What is no message reaches Wait as well as the other end.
func TestSDKServerRefuses(t *testing.T) {
	s := newSDKServer(t)
	ws, _, err := wsconn.Dial(t.Context(), s.url, &socketOptions)
	if err != nil {
		t.Fatal(err)
	}
	session := receive(t, "the session of the server", s.sessions)
	if err := ws.Write(t.Context(), []byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)); err != nil {
		t.Fatal(err)
	}
	if got, err := ws.Read(t.Context(), nil); !errors.Is(err, wsconn.ErrPolicy) {
		t.Errorf("Read() = %q, %v, want %v", got, err, wsconn.ErrPolicy)
	}
	if err := session.Wait(); !errors.As(err, new(*mcpsdk.MessageError)) {
		t.Errorf("Wait() = %v, want a MessageError", err)
	}
}

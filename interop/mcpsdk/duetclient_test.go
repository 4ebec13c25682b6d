package mcpsdk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

// duetClient is an MCP client of duet alone, connected to the SDK's server.
type duetClient struct {
	*peer.Conn
	*stage
	session  *mcp.ServerSession // at the other end
	progress chan progress
	changed  chan struct{}
	events   chan peer.Event
}

// dial connects a client that has not said initialize.
func dial(t *testing.T, s *sdkServer) *duetClient {
	t.Helper()
	c := &duetClient{
		stage:    newStage(),
		progress: make(chan progress, calls),
		changed:  make(chan struct{}, 1),
		events:   make(chan peer.Event, calls),
	}
	var reg peer.Registry
	elicit.Handle(&reg, func(ctx context.Context, in question) (answer, error) {
		if in.Message != questions[0] {
			_, err := c.hold(ctx, 0)
			return answer{}, err
		}
		caller, _ := peer.CallerFrom(ctx)
		got, err := callTool.Call(ctx, caller, toolCall{Name: "add", Arguments: arguments{A: 20, B: 22}})
		return answer{"accept", object{"sum": got.text()}}, err
	})
	toolsChanged.Handle(&reg, func(context.Context, struct{}) error {
		c.changed <- struct{}{}
		return nil
	})
	progressed.Handle(&reg, func(_ context.Context, p progress) error {
		c.progress <- p
		return nil
	})
	conn, err := peer.Dial(t.Context(), s.url, &peer.Options{
		Handler: &reg, Profile: profile.MCP20251125(), WebSocket: socketOptions,
		Events: func(e peer.Event) { c.events <- e },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Conn = conn
	c.session = receive(t, "the session of the server", s.sessions)
	t.Cleanup(func() {
		_ = conn.Close()
		receive(t, "the end of the client", conn.Done())
		if err := c.session.Wait(); err != nil {
			t.Errorf("Wait() = %v, want nil", err)
		}
	})
	return c
}

// greet is dial and the handshake.
func greet(t *testing.T, s *sdkServer) *duetClient {
	t.Helper()
	c := dial(t, s)
	c.handshake(t)
	return c
}

func (c *duetClient) handshake(t *testing.T) initializeResult {
	t.Helper()
	got, err := initialize.Call(t.Context(), c, initializeParams{
		ProtocolVersion: revision,
		Capabilities:    object{"elicitation": object{"form": object{}}},
		ClientInfo:      implementation{"duet client", "4"},
	})
	if err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if err := initialized.Notify(t.Context(), c, struct{}{}); err != nil {
		t.Fatalf("notifications/initialized: %v", err)
	}
	return got
}

// tool calls a tool and returns the one text it answers.
func (c *duetClient) tool(ctx context.Context, name string, args arguments) (string, error) {
	got, err := callTool.Call(ctx, c, toolCall{Name: name, Arguments: args})
	if err == nil && got.IsError {
		return "", errors.New(got.text())
	}
	return got.text(), err
}

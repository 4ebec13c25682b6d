package mcpsdk_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/interop/mcpsdk"
	"github.com/duetrpc/duet/wsconn"
)

// sdkClient is a session of the SDK's client with a duet server.
type sdkClient struct {
	*mcp.ClientSession
	*stage
	greeting
	wire     *tapped
	socket   *wsconn.Conn
	progress chan *mcp.ProgressNotificationParams
	changed  chan struct{}
}

// connect opens a session.
func connect(t *testing.T, s *duetServer, opts *mcp.ClientSessionOptions) *sdkClient {
	t.Helper()
	c := &sdkClient{
		stage:    newStage(),
		progress: make(chan *mcp.ProgressNotificationParams, calls),
		changed:  make(chan struct{}, 1),
	}
	socket, _, err := wsconn.Dial(t.Context(), s.url, &socketOptions)
	if err != nil {
		t.Fatal(err)
	}
	c.socket, c.wire = socket, &tapped{Transport: socket}
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk client", Version: "2"}, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if req.Params.Message != questions[0] {
				_, err := c.hold(ctx, 0)
				return nil, err
			}
			text, err := callText(ctx, req.Session, "add", arguments{A: 20, B: 22})
			return &mcp.ElicitResult{Action: "accept", Content: object{"sum": text}}, err
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.progress <- req.Params
		},
	})
	if c.ClientSession, err = client.Connect(t.Context(), mcpsdk.New(c.wire), opts); err != nil {
		t.Fatalf("Connect() = %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = socket.Close(nil) // Close would wait for what hangs
		}
		if err := c.Close(); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
	})
	c.greeting = receive(t, "initialize", s.greeted)
	return c
}

// session is connect with the revision these tests are about.
func session(t *testing.T, s *duetServer) *sdkClient {
	t.Helper()
	return connect(t, s, &mcp.ClientSessionOptions{ProtocolVersion: revision})
}

// callText calls a tool and returns the one text it answers.
func callText(ctx context.Context, s *mcp.ClientSession, name string, args arguments) (string, error) {
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", err
	}
	if len(res.Content) == 1 && !res.IsError {
		if text, ok := res.Content[0].(*mcp.TextContent); ok {
			return text.Text, nil
		}
	}
	return "", fmt.Errorf("tool %q answered %+v", name, res)
}

package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/interop/mcpsdk"
	"github.com/duetrpc/duet/wsconn"
)

// sdkServer is the SDK's MCP server.
type sdkServer struct {
	*mcp.Server
	*stage
	url         string
	sessions    chan *mcp.ServerSession
	initialized chan struct{}
	progress    chan *mcp.ProgressNotificationParams // what clients report
}

func newSDKServer(t *testing.T) *sdkServer {
	t.Helper()
	s := &sdkServer{
		stage:       newStage(),
		sessions:    make(chan *mcp.ServerSession, 1),
		initialized: make(chan struct{}, 1),
		progress:    make(chan *mcp.ProgressNotificationParams, 1),
	}
	s.Server = mcp.NewServer(&mcp.Implementation{Name: "sdk server", Version: "3"}, &mcp.ServerOptions{
		InitializedHandler: func(context.Context, *mcp.InitializedRequest) { s.initialized <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationServerRequest) {
			s.progress <- req.Params
		},
	})
	s.add("add", func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (string, error) {
		return strconv.Itoa(in.A + in.B), nil
	})
	s.add("fail", func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (string, error) {
		if in.N > 0 {
			return "", errors.New("tool failed")
		}
		return "", &jsonrpc.Error{Code: lucklessCode, Message: lucklessMessage, Data: json.RawMessage(lucklessData)}
	})
	s.add("ask", func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (string, error) {
		got, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: questions[in.N], RequestedSchema: sumSchema})
		if err != nil {
			return "", err
		}
		sum, _ := got.Content["sum"].(string)
		return got.Action + " " + sum, nil
	})
	s.add("count", func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (string, error) {
		for i := range in.N {
			p := &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(),
				Progress:      float64(i + 1), Total: float64(in.N), Message: "counting",
			}
			if err := req.Session.NotifyProgress(ctx, p); err != nil {
				return "", err
			}
		}
		return strconv.Itoa(in.N), nil
	})
	s.add("hold", func(ctx context.Context, _ *mcp.CallToolRequest, in arguments) (string, error) {
		return s.hold(ctx, in.N)
	})
	s.url = listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := wsconn.Accept(w, r, &socketOptions)
		if err != nil {
			t.Errorf("Accept() = %v", err)
			return
		}
		session, err := s.Connect(r.Context(), mcpsdk.New(ws), nil)
		if err != nil {
			t.Errorf("Connect() = %v", err)
			return
		}
		s.sessions <- session
	}))
	return s
}

// add adds a tool that answers a text.
func (s *sdkServer) add(name string, run func(context.Context, *mcp.CallToolRequest, arguments) (string, error)) {
	mcp.AddTool(s.Server, &mcp.Tool{Name: name, InputSchema: object{"type": "object"}},
		func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
			text, err := run(ctx, req, in)
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
}

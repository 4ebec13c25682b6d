package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

// server is the half with the tools. It serves any number of clients.
type server struct {
	pace time.Duration
	log  *slog.Logger
}

func newServer(pace time.Duration, log *slog.Logger) *server { return &server{pace, log} }

// session is what the server knows of one client.
type session struct {
	server *server

	mu     sync.Mutex
	client ClientCapabilities
	level  string // of the log
	tools  []tool
}

// sessionKey is the key of a session in the contexts of its connection.
type sessionKey struct{}

// of makes a handler of a method of the session that a call belongs to.
func of[In, Out any](f func(s *session, ctx context.Context, in In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		return f(ctx.Value(sessionKey{}).(*session), ctx, in)
	}
}

// options say what the server handles. The profile does the rest: it refuses what
// comes before initialize, and does not answer what was cancelled. What runs ends
// with ctx.
func (s *server) options(ctx context.Context) *peer.Options {
	var reg peer.Registry
	ping.Handle(&reg, pong)
	initialize.Handle(&reg, of((*session).initialize))
	initialized.Handle(&reg, func(context.Context, any) error { return nil })
	setLevel.Handle(&reg, of((*session).setLevel))
	listTools.Handle(&reg, of((*session).listTools), peer.OptionalParams())
	callTool.Handle(&reg, of((*session).callTool))
	opts := &peer.Options{
		Handler:     &reg,
		Profile:     profile.MCP20251125(),
		BaseContext: ctx,
		Logger:      s.log,
		// The values of this context are those of all contexts of the connection.
		Authorize: func(r *http.Request) (context.Context, error) {
			return context.WithValue(r.Context(), sessionKey{}, s.session()), nil
		},
	}
	opts.WebSocket.Subprotocols = []string{subprotocol}
	return opts
}

func (s *server) session() *session {
	return &session{server: s, level: "info", tools: []tool{buildTool(), deployTool(), watchTool(), extendTool()}}
}

func pong(context.Context, any) (Empty, error) { return Empty{}, nil }

// initialize agrees on the revision: what the client asks for if it is known here,
// otherwise another that is (basic/lifecycle, "Version Negotiation").
func (s *session) initialize(_ context.Context, in InitializeParams) (InitializeResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = in.Capabilities
	s.server.log.Debug("initialize", "client", in.ClientInfo.Name, "asks for", in.ProtocolVersion)
	return InitializeResult{
		ProtocolVersion: revision,
		Capabilities:    ServerCapabilities{Logging: &struct{}{}, Tools: &ToolsCapability{ListChanged: true}},
		ServerInfo:      Implementation{"builder", "1.0"},
	}, nil
}

func (s *session) setLevel(_ context.Context, in SetLevelParams) (Empty, error) {
	if !slices.Contains(levels(), in.Level) {
		return Empty{}, &peer.Error{Code: peer.InvalidParams, Message: fmt.Sprintf("there is no level %q", in.Level)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = in.Level
	return Empty{}, nil
}

// logs sends a line of the log, if the client wants to see lines of that level.
func (s *session) logs(ctx context.Context, to peer.Caller, m LogMessage) error {
	s.mu.Lock()
	wanted := slices.Index(levels(), m.Level) >= slices.Index(levels(), s.level)
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	return logMessage.Notify(ctx, to, m)
}

func (s *session) listTools(_ context.Context, in ListToolsParams) (out ListToolsResult, err error) {
	if in.Cursor != "" {
		return out, &peer.Error{Code: peer.InvalidParams, Message: "there is one page only"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tools {
		out.Tools = append(out.Tools, t.Tool)
	}
	return out, nil
}

func (s *session) callTool(ctx context.Context, in CallToolParams) (CallToolResult, error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.tools, func(t tool) bool { return t.Name == in.Name })
	var t tool
	if i >= 0 {
		t = s.tools[i]
	}
	s.mu.Unlock()
	if i < 0 {
		return CallToolResult{}, &peer.Error{Code: peer.InvalidParams, Message: "Unknown tool: " + in.Name}
	}
	result, err := t.run(ctx, s, in.Arguments)
	if err != nil && ctx.Err() != nil {
		return sorry("%s was given up: %v", t.Name, context.Cause(ctx))
	}
	return result, err
}

// add adds a tool, and tells the client.
func (s *session) add(ctx context.Context, t tool) error {
	s.mu.Lock()
	if !slices.ContainsFunc(s.tools, func(old tool) bool { return old.Name == t.Name }) {
		s.tools = append(s.tools, t)
	}
	s.mu.Unlock()
	client, _ := peer.CallerFrom(ctx)
	return toolsChanged.Notify(ctx, client, nil)
}

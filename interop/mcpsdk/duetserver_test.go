package mcpsdk_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

// duetServer is an MCP server of duet alone.
type duetServer struct {
	*peer.Server
	*stage
	url         string
	greeted     chan greeting
	initialized chan struct{}
	progress    chan progress // what clients report
}

// greeting is how a client has come.
type greeting struct {
	initializeParams
	conn *peer.Conn // the server's end
}

func newDuetServer(t *testing.T) *duetServer {
	t.Helper()
	s := &duetServer{
		stage:       newStage(),
		greeted:     make(chan greeting, 1),
		initialized: make(chan struct{}, 1),
		progress:    make(chan progress, 1),
	}
	var reg peer.Registry
	initialize.Handle(&reg, s.initialize)
	initialized.Handle(&reg, func(context.Context, struct{}) error {
		s.initialized <- struct{}{}
		return nil
	})
	progressed.Handle(&reg, func(_ context.Context, p progress) error {
		s.progress <- p
		return nil
	})
	ping.Handle(&reg, func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	listTools.Handle(&reg, func(context.Context, struct{}) (toolList, error) {
		var list toolList
		for _, name := range toolNames {
			list.Tools = append(list.Tools, tool{Name: name, InputSchema: object{"type": "object"}})
		}
		return list, nil
	})
	callTool.Handle(&reg, s.callTool)
	s.Server = peer.NewServer(&peer.Options{Handler: &reg, Profile: profile.MCP20251125(), WebSocket: socketOptions})
	s.url = listen(t, s)
	t.Cleanup(func() { // when the clients have gone
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown() = %v, want nil", err)
		}
	})
	return s
}

func (s *duetServer) initialize(ctx context.Context, in initializeParams) (initializeResult, error) {
	conn, _ := peer.ConnFrom(ctx)
	s.greeted <- greeting{in, conn}
	return initializeResult{
		ProtocolVersion: revision,
		Capabilities:    object{"tools": object{"listChanged": true}},
		ServerInfo:      implementation{"duet server", "1"},
	}, nil
}

func (s *duetServer) callTool(ctx context.Context, in toolCall) (toolResult, error) {
	caller, _ := peer.CallerFrom(ctx)
	switch arg := in.Arguments; in.Name {
	case "add":
		return textResult(strconv.Itoa(arg.A + arg.B)), nil
	case "fail":
		return toolResult{}, &peer.Error{Code: lucklessCode, Message: lucklessMessage, Data: json.RawMessage(lucklessData)}
	case "ask":
		got, err := elicit.Call(ctx, caller, question{Mode: "form", Message: questions[arg.N], RequestedSchema: sumSchema})
		if err != nil {
			return toolResult{}, err
		}
		sum, _ := got.Content["sum"].(string)
		return textResult(got.Action + " " + sum), nil
	case "count":
		report, ok := peer.ProgressFrom(ctx)
		for i := 0; ok && i < arg.N; i++ {
			if err := report.Report(peer.Progress{Done: float64(i + 1), Total: float64(arg.N), Message: "counting"}); err != nil {
				return toolResult{}, err
			}
		}
		return textResult(strconv.Itoa(arg.N)), nil
	case "hold":
		text, err := s.hold(ctx, arg.N)
		return textResult(text), err
	}
	return toolResult{}, &peer.Error{Code: peer.InvalidParams, Message: "unknown tool"}
}

// wantNoOddities fails the test if conn has seen what never became an answer,
// other than the kinds named.
func wantNoOddities(t *testing.T, conn *peer.Conn, but ...peer.EventKind) {
	t.Helper()
	events := conn.Stats().Events
	for _, kind := range but {
		delete(events, kind)
	}
	if len(events) != 0 {
		t.Errorf("Stats().Events = %v, want none", events)
	}
	if err := conn.Err(); err != nil {
		t.Errorf("Err() = %v, want nil", err)
	}
}

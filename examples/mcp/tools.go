package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/duetrpc/duet/peer"
)

// tool is a Tool and what it does. What goes wrong in a way that the model can mend
// is a result; an error is for the rest (server/tools, "Error Handling").
type tool struct {
	Tool
	run func(ctx context.Context, s *session, args json.RawMessage) (CallToolResult, error)
}

func says(format string, args ...any) (CallToolResult, error) {
	return CallToolResult{Content: []Content{{"text", fmt.Sprintf(format, args...)}}}, nil
}

func sorry(format string, args ...any) (CallToolResult, error) {
	r, err := says(format, args...)
	r.IsError = true
	return r, err
}

// plain is the tool with that name, which takes no arguments.
func plain(name, description string, run func(context.Context, *session) (CallToolResult, error)) tool {
	return tool{Tool{name, description, Schema{Type: "object"}}, func(ctx context.Context, s *session, _ json.RawMessage) (CallToolResult, error) {
		return run(ctx, s)
	}}
}

// buildTool takes its time, and tells how far it is.
func buildTool() tool {
	const most = 9
	input := Schema{
		Type:       "object",
		Properties: map[string]Property{"packages": {Type: "integer", Minimum: 1, Maximum: most}},
		Required:   []string{"packages"},
	}
	return tool{Tool{"build", "Build some packages", input}, func(ctx context.Context, s *session, args json.RawMessage) (CallToolResult, error) {
		var in struct {
			Packages int `json:"packages"`
		}
		if err := (peer.JSONv2{}).Unmarshal(args, &in); err != nil || in.Packages < 1 || in.Packages > most {
			return sorry("packages has to be a number from 1 to %d", most)
		}
		for n := range in.Packages {
			select {
			case <-time.After(s.server.pace):
			case <-ctx.Done():
				return CallToolResult{}, context.Cause(ctx)
			}
			if err := report(ctx, n+1, in.Packages, fmt.Sprintf("package %d is built", n+1)); err != nil {
				return CallToolResult{}, err
			}
		}
		return says("%d packages are built", in.Packages)
	}}
}

// deployTool asks the user, through the client, whose call is open meanwhile. To ask
// at any other time the protocol does not allow.
func deployTool() tool {
	return plain("deploy", "Deploy what was built, where the user says", func(ctx context.Context, s *session) (CallToolResult, error) {
		s.mu.Lock()
		able := s.client.Elicitation.form()
		s.mu.Unlock()
		if !able {
			return sorry("the client cannot ask its user, so nothing is deployed")
		}
		question := ElicitParams{Message: "Where to?", RequestedSchema: Schema{
			Type:       "object",
			Properties: map[string]Property{"target": {Type: "string", Enum: []string{"staging", "production"}}},
			Required:   []string{"target"},
		}}
		client, _ := peer.CallerFrom(ctx)
		answer, err := elicit.Call(ctx, client, question)
		switch {
		case err != nil:
			return CallToolResult{}, peer.Forward(err)
		case answer.Action != "accept":
			return sorry("not deployed: the user chose to %s", answer.Action)
		}
		return says("deployed to %s", answer.Content["target"])
	})
}

// watchTool goes on until it is cancelled. Then nobody waits for its result, so it
// says in the log why it ended, and whether it was answered all the same.
func watchTool() tool {
	return plain("watch", "Build whenever something changes", func(ctx context.Context, s *session) (CallToolResult, error) {
		if err := report(ctx, 1, 0, "watching"); err != nil {
			return CallToolResult{}, err
		}
		<-ctx.Done()
		var cancelled *peer.CancelError
		if !errors.As(context.Cause(ctx), &cancelled) {
			return CallToolResult{}, context.Cause(ctx)
		}
		client, _ := peer.CallerFrom(ctx)
		still := context.WithoutCancel(ctx)
		peer.Answered(ctx, func(unsent error) {
			m := LogMessage{"notice", "watch", Ended{cancelled.Reason, unsent == nil}}
			if err := s.logs(still, client, m); err != nil {
				s.server.log.Debug("watch", "error", err)
			}
		})
		return says("nobody reads this")
	})
}

// extendTool adds a tool.
func extendTool() tool {
	return plain("extend", "Have one more tool", func(ctx context.Context, s *session) (CallToolResult, error) {
		lint := plain("lint", "Find fault", func(context.Context, *session) (CallToolResult, error) { return says("no fault") })
		if err := s.add(ctx, lint); err != nil {
			return CallToolResult{}, err
		}
		return says("%s can be called now", lint.Name)
	})
}

// report tells the caller of a tool how far it is, if it wants to know.
func report(ctx context.Context, done, total int, message string) error {
	to, _ := peer.ProgressFrom(ctx)
	return to.Report(peer.Progress{Done: float64(done), Total: float64(total), Message: message})
}

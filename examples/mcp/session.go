package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/duetrpc/duet/examples/internal/screen"
	"github.com/duetrpc/duet/peer"
)

// session is all that the client does. Each step fails if anything is not as it
// should be.
func (c *client) session(ctx context.Context) error {
	if got := c.conn.Subprotocol(); got != subprotocol {
		return fmt.Errorf("the server speaks %q and not %q", got, subprotocol)
	}
	for _, step := range []func(context.Context) error{
		c.early, c.start, c.build, c.mistake, c.deploy, c.watch, c.extend,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// early does what may be done before the session is open, and what may not.
func (c *client) early(ctx context.Context) error {
	if _, err := ping.Call(ctx, c.conn, nil); err != nil {
		return err
	}
	c.screen.Line(screen.Out, string(ping), "answered")
	_, err := listTools.Call(ctx, c.conn, ListToolsParams{})
	return c.refused(string(listTools), err) // with which code the protocol leaves open
}

// refused makes sure that the other end has answered with an error, and with one of
// these codes if there are any.
func (c *client) refused(method string, err error, codes ...peer.Code) error {
	var answer *peer.Error
	switch {
	case err == nil:
		return fmt.Errorf("%s was served, and was to be refused", method)
	case !errors.As(err, &answer) || len(codes) > 0 && !slices.Contains(codes, answer.Code):
		return fmt.Errorf("was to be refused with %d: %w", codes, err)
	}
	c.screen.Line(screen.Out, method, "answered with %d, %s", answer.Code, answer.Message)
	return nil
}

// start agrees with the server on what both can.
func (c *client) start(ctx context.Context) error {
	out, err := initialize.Call(ctx, c.conn, InitializeParams{
		ProtocolVersion: c.offer,
		Capabilities:    ClientCapabilities{Elicitation: &ElicitationCapability{}},
		ClientInfo:      Implementation{"user", "1.0"},
	})
	if err != nil {
		return err
	}
	if out.ProtocolVersion != revision { // who does not know it has to leave (basic/lifecycle, "Version Negotiation")
		return fmt.Errorf("the server wants revision %q", out.ProtocolVersion)
	}
	if s := out.Capabilities; s.Logging == nil || s.Tools == nil || !s.Tools.ListChanged {
		return fmt.Errorf("%s lacks what this client needs", out.ServerInfo.Name)
	}
	c.screen.Line(screen.Out, string(initialize), "asked for %s, agreed on %s, with %s %s",
		c.offer, out.ProtocolVersion, out.ServerInfo.Name, out.ServerInfo.Version)
	if err := initialized.Notify(ctx, c.conn, nil); err != nil {
		return err
	}
	if _, err := setLevel.Call(ctx, c.conn, SetLevelParams{"notice"}); err != nil {
		return err
	}
	c.screen.Line(screen.Out, string(setLevel), "notice")
	if err := c.list(ctx, c.conn); err != nil {
		return err
	}
	return c.has("build", "deploy", "watch", "extend")
}

// call calls a tool and makes sure that it says what it should.
func (c *client) call(ctx context.Context, in CallToolParams, want string, opts ...peer.CallOption) error {
	c.screen.Line(screen.Out, string(callTool), "%s", strings.TrimSpace(in.Name+" "+string(in.Arguments)))
	out, err := callTool.Call(ctx, c.conn, in, opts...)
	if err != nil {
		return err
	}
	outcome := "result"
	if out.IsError {
		outcome = "result, an error"
	}
	got := ""
	if len(out.Content) > 0 {
		got = out.Content[0].Text
	}
	c.screen.Line(screen.In, "  "+outcome, "%s", got)
	if got != want {
		return fmt.Errorf("%s says %q, want %q", in.Name, got, want)
	}
	return nil
}

// build shows how far the tool is.
func (c *client) build(ctx context.Context) error {
	var steps []float64
	err := c.call(ctx, CallToolParams{"build", json.RawMessage(`{"packages":3}`)}, "3 packages are built",
		peer.OnProgress(func(p peer.Progress) {
			steps = append(steps, p.Done)
			c.screen.Line(screen.In, "  notifications/progress", "%v of %v, %s", p.Done, p.Total, p.Message)
		}))
	if err == nil && !slices.Equal(steps, []float64{1, 2, 3}) {
		err = fmt.Errorf("the steps of the build were %v", steps)
	}
	return err
}

// mistake calls what is not there, and what is with arguments that do not fit. Only
// the second is for the model to mend, so only the first is an error of the call.
func (c *client) mistake(ctx context.Context) error {
	in := CallToolParams{Name: "guess"}
	_, err := callTool.Call(ctx, c.conn, in)
	if err := c.refused(string(callTool), err, peer.InvalidParams); err != nil {
		return err
	}
	return c.call(ctx, CallToolParams{"build", json.RawMessage(`{"packages":-1}`)}, "packages has to be a number from 1 to 9")
}

// deploy is asked back while its call is open.
func (c *client) deploy(ctx context.Context) error {
	err := c.call(ctx, CallToolParams{Name: "deploy"}, "deployed to staging")
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.asked != 1 {
		err = fmt.Errorf("the user was asked %d times", c.asked)
	}
	return err
}

// watch gives a call up. There is no answer to wait for, and one that comes is to be
// ignored (basic/utilities/cancellation, "Behavior Requirements"), so the server says
// in the log that it has heard of it.
func (c *client) watch(ctx context.Context) error {
	const reason = "the user has seen enough"
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := c.call(calling, CallToolParams{Name: "watch"}, "", peer.OnProgress(func(p peer.Progress) {
		c.screen.Line(screen.In, "  notifications/progress", "%v, %s", p.Done, p.Message)
		c.screen.Line(screen.Out, "notifications/cancelled", "%s", reason)
		cancel(&peer.CancelError{Reason: reason})
	}))
	switch {
	case err == nil:
		return errors.New("watch has ended, and nobody had cancelled it")
	case !errors.As(err, new(*peer.CancelError)):
		return err
	}
	select {
	case m := <-c.logged:
		if m.Data.Reason != reason {
			return fmt.Errorf("the server says that watch ended with %q, want %q", m.Data.Reason, reason)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// extend is told that there is one more tool, and asks for the tools again, before or
// after it has its answer.
func (c *client) extend(ctx context.Context) error {
	if err := c.call(ctx, CallToolParams{Name: "extend"}, "lint can be called now"); err != nil {
		return err
	}
	select {
	case <-c.relisted:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := c.has("build", "deploy", "watch", "extend", "lint"); err != nil {
		return err
	}
	return c.call(ctx, CallToolParams{Name: "lint"}, "no fault")
}

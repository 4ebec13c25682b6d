package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/duetrpc/duet/examples/internal/screen"
	"github.com/duetrpc/duet/peer"
)

// client is the half with the user, and the model.
type client struct {
	conn   *peer.Conn
	screen *screen.Screen
	offer  string          // the revision it asks for
	logged chan LogMessage // what the server had to say; has room for a few

	relisted chan struct{} // the tools have changed, and were asked for again

	mu    sync.Mutex
	tools []string // that the server has, by name
	asked int      // questions for the user
}

func newClient(offer string, stdout io.Writer) *client {
	return &client{screen: screen.New(stdout, "──▶ from the client to the server, ◀── from the server to the client"), offer: offer, logged: make(chan LogMessage, 8), relisted: make(chan struct{}, 1)}
}

// methods are what the server may ask and tell.
func (c *client) methods() *peer.Registry {
	var reg peer.Registry
	ping.Handle(&reg, pong)
	elicit.Handle(&reg, c.elicit)
	logMessage.Handle(&reg, c.log)
	toolsChanged.Handle(&reg, c.toolsChanged)
	return &reg
}

// elicit asks the user, who takes the first of what is offered.
func (c *client) elicit(_ context.Context, in ElicitParams) (ElicitResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	chosen := map[string]string{}
	for name, p := range in.RequestedSchema.Properties {
		if len(p.Enum) == 0 {
			c.screen.Line(screen.In, "  "+string(elicit), "%s (it is not for the user to say)", in.Message)
			return ElicitResult{Action: "decline"}, nil
		}
		chosen[name] = p.Enum[0]
	}
	c.screen.Line(screen.In, "  "+string(elicit), "%s The user accepts with %v", in.Message, chosen)
	return ElicitResult{Action: "accept", Content: chosen}, nil
}

func (c *client) log(_ context.Context, m LogMessage) error {
	c.screen.Line(screen.In, string(logMessage), "%s of %s: %q, answered: %v", m.Level, m.Logger, m.Data.Reason, m.Data.Answered)
	select {
	case c.logged <- m:
		return nil
	default:
		return errors.New("nobody reads the log")
	}
}

// toolsChanged asks for the tools again, at once: the handler of a notification may
// call back like any other.
func (c *client) toolsChanged(ctx context.Context, _ any) error {
	c.screen.Line(screen.In, string(toolsChanged), "so the client asks again")
	server, _ := peer.CallerFrom(ctx)
	if err := c.list(ctx, server); err != nil {
		return err
	}
	select {
	case c.relisted <- struct{}{}:
	default: // nobody has taken note of the last time
	}
	return nil
}

// list asks for the tools.
func (c *client) list(ctx context.Context, server peer.Caller) error {
	out, err := listTools.Call(ctx, server, ListToolsParams{})
	if err != nil {
		return err
	}
	var names []string
	for _, t := range out.Tools {
		names = append(names, t.Name)
	}
	c.screen.Line(screen.Out, string(listTools), "%s", strings.Join(names, ", "))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools = names
	return nil
}

// has makes sure that the server has these tools, in whatever order.
func (c *client) has(want ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(slices.Sorted(slices.Values(c.tools)), slices.Sorted(slices.Values(want))) {
		return fmt.Errorf("the server has the tools %q, want %q", c.tools, want)
	}
	return nil
}

// verdict looks at what is left when the connection has ended.
func (c *client) verdict() error {
	for kind, n := range c.conn.Stats().Events {
		if n > 0 && kind != peer.LateResponse { // the answer to a call that was cancelled
			return fmt.Errorf("%d of what never became an answer: %v", n, kind)
		}
	}
	c.screen.Matched("what was called, asked back, cancelled and refused")
	return nil
}

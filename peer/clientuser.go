package peer

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// The functions of ClientOptions run in goroutines of their own: they may panic in them,
// or end them, and the client goes on.

// try runs one of the user's functions. Its error comes when it has returned.
func (c *Client) try(name string, f func() error) <-chan error {
	result := make(chan error, 1)
	go func() {
		err := fmt.Errorf("peer: %s did not return", name) // runtime.Goexit
		defer func() {
			if v := recover(); v != nil {
				c.teller.log(slog.LevelError, "duet: panic", panicAttrs(name, v)...)
				err = fmt.Errorf("peer: %s: %w", name, errPanic)
			}
			result <- err
		}()
		err = f()
	}()
	return result
}

// givesUp asks GiveUp.
func (c *Client) givesUp(why error) (gives bool) {
	f := c.opts.GiveUp
	if f == nil {
		return false
	}
	err := <-c.try("GiveUp", func() error { gives = f(why); return nil })
	return err == nil && gives
}

// close closes a Transport that no connection has.
func (c *Client) close(t Transport) {
	<-c.try("Transport.Close", func() error { return t.Close(nil) })
}

// panicAttrs is what is logged of a panic, in the goroutine of it.
func panicAttrs(name string, v any) []slog.Attr {
	return []slog.Attr{
		slog.String("method", name),
		slog.String("panic", fmt.Sprint(v)),
		slog.String("stack", string(debug.Stack())),
	}
}

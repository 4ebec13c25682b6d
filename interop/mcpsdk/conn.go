package mcpsdk

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// conn is an mcp.Connection. What the SDK asks of one beyond a peer.Transport is
// that many may write at once.
type conn struct {
	below peer.Transport
	turn  chan struct{} // full while somebody writes
}

func newConn(t peer.Transport) *conn {
	return &conn{below: t, turn: make(chan struct{}, 1)}
}

// Read waits for the next message. It wraps io.EOF where the other end ended the
// connection in order, which is what the SDK looks for.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	text, err := c.below.Read(ctx, nil) // a buffer of its own: the message may keep it
	if err != nil {
		return nil, fmt.Errorf("mcpsdk: read: %w", err)
	}
	msg, err := decode(text)
	if err != nil {
		// The SDK will close without a cause; the first one counts.
		_ = c.below.Close(err)
		return nil, err
	}
	return msg, nil
}

// decode is jsonrpc.DecodeMessage for a text that is one JSON value: the SDK's own
// overlooks what follows the first, and bytes that are not UTF-8.
func decode(text []byte) (jsonrpc.Message, error) {
	if err := codec.Check(text, nil); err != nil {
		return nil, &MessageError{err}
	}
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, &MessageError{err}
	}
	return msg, nil
}

// Write sends one message. ctx bounds the wait for others that write, and no more:
// a message that has been begun is ended by Close alone, since half of one would
// take the connection with it.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("mcpsdk: write: %w", err)
	}
	if err := c.takeTurn(ctx); err != nil {
		return fmt.Errorf("mcpsdk: write not begun: %w", err)
	}
	defer c.giveTurn()
	if err := c.below.Write(context.WithoutCancel(ctx), text); err != nil {
		return fmt.Errorf("mcpsdk: write: %w", err)
	}
	return nil
}

func (c *conn) takeTurn(ctx context.Context) error {
	if ctx.Err() != nil { // select would toss a coin
		return ctx.Err()
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *conn) giveTurn() { <-c.turn }

// Close ends the connection in order. It returns at once, which the SDK counts on:
// it holds a lock meanwhile.
func (c *conn) Close() error {
	if err := c.below.Close(nil); err != nil {
		return fmt.Errorf("mcpsdk: close: %w", err)
	}
	return nil
}

// SessionID returns "": a session is its connection.
func (c *conn) SessionID() string { return "" }

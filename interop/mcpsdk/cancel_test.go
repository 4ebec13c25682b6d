package mcpsdk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

// wantReason fails the test if a context did not end by what the SDK says of one
// that was cancelled.
func wantReason(t *testing.T, cause error) {
	t.Helper()
	var told *peer.CancelError
	if !errors.As(cause, &told) || told.Reason != "context canceled" {
		t.Errorf("the context ended with %v, want the reason that the other end gave", cause)
	}
}

func TestSDKClientCancels(t *testing.T) {
	s := newDuetServer(t)
	c := session(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := callText(ctx, c.ClientSession, "hold", arguments{N: 1})
		done <- err
	}()
	receive(t, "hold begins", s.began)
	cancel()
	if err := receive(t, "the call returns", done); !errors.Is(err, context.Canceled) {
		t.Errorf("CallTool() = %v, want context.Canceled", err)
	}
	wantReason(t, receive(t, "the end of the handler's context", s.ended))
	if err := c.Ping(t.Context(), nil); err != nil {
		t.Errorf("Ping() after a cancel = %v", err)
	}

	// When a server has shut down, whatever it had to say has been read.
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("Wait() = %v, want nil", err)
	}
	call := c.wire.wrote(`"hold"`)
	if len(call) != 1 {
		t.Fatalf("the call went out as %q", call)
	}
	if got := c.wire.received(`"id":` + idOf(t, call[0]) + `,`); len(got) != 0 {
		t.Errorf("the cancelled call was answered with %q", got)
	}
	wantNoOddities(t, c.conn)
}

// A client gives up a call whose handler has asked it something: then that is given
// up as well.
func TestSDKClientCancelsThrough(t *testing.T) {
	c := session(t, newDuetServer(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := callText(ctx, c.ClientSession, "ask", arguments{N: 1})
		done <- err
	}()
	receive(t, "the question", c.began)
	cancel()
	if err := receive(t, "the call returns", done); !errors.Is(err, context.Canceled) {
		t.Errorf("CallTool() = %v, want context.Canceled", err)
	}
	if err := receive(t, "the end of the question's context", c.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the question's context ended with %v, want context.Canceled", err)
	}
	got := c.wire.received(`"method":"notifications/cancelled"`)
	if len(got) != 1 || !strings.Contains(got[0], `"reason":"context canceled"`) {
		t.Errorf("the client was told %q, want once, and the reason it gave itself", got)
	}
}

func TestSDKServerIsCancelled(t *testing.T) {
	s := newSDKServer(t)
	c := greet(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.tool(ctx, "hold", arguments{N: 1})
		done <- err
	}()
	receive(t, "hold begins", s.began)
	cancel()
	err := receive(t, "the call returns", done)
	var failed *peer.CallError
	if !errors.As(err, &failed) || failed.Sent == pending.NotSent || !errors.Is(err, context.Canceled) {
		t.Errorf("tools/call: %v, want context.Canceled, and that it may have been sent", err)
	}
	if err := receive(t, "the end of the handler's context", s.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context ended with %v, want context.Canceled", err)
	}
	if _, err := ping.Call(t.Context(), c, struct{}{}); err != nil {
		t.Errorf("ping after a cancel: %v", err)
	}

	// The SDK answers a cancelled call all the same. It is seen, and completes nothing.
	if got := receive(t, "the late answer", c.events); got.Kind != peer.LateResponse || got.Method != "tools/call" {
		t.Errorf("event %v of %q, want a late response to tools/call", got.Kind, got.Method)
	}
	wantNoOddities(t, c.Conn, peer.LateResponse)
}

// A client gives up a call whose handler has asked it something: then that is given
// up as well.
func TestSDKServerCancelsThrough(t *testing.T) {
	c := greet(t, newSDKServer(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.tool(ctx, "ask", arguments{N: 1})
		done <- err
	}()
	receive(t, "the question", c.began)
	cancel()
	if err := receive(t, "the call returns", done); !errors.Is(err, context.Canceled) {
		t.Errorf("tools/call: %v, want context.Canceled", err)
	}
	wantReason(t, receive(t, "the end of the question's context", c.ended))
}

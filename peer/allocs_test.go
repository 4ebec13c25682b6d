//go:build !race

package peer_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// TestAllocations holds how many allocations both ends together make. They do not
// depend on how busy the machine is, but a garbage collection empties the pools,
// so each ceiling leaves room for that; a pool that is no longer used costs more
// than the room. One allocation there always is: the context of the handler, which
// may be kept and so is never used again.
func TestAllocations(t *testing.T) {
	r := &peer.Registry{}
	typed := peer.Method[benchParams, benchParams]("typed")
	typed.Handle(r, func(_ context.Context, p benchParams) (benchParams, error) { return p, nil })
	r.Handle("raw", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) { return req.Params, nil }))
	event := peer.Notification[benchParams]("event")
	handled := make(chan struct{})
	event.Handle(r, func(context.Context, benchParams) error { handled <- struct{}{}; return nil })
	server, url := serve(t, &peer.Options{Handler: r})
	socket := dial(t, url, nil)
	conns(t, server, 1)
	left, _ := peertest.Pair(t, nil, &peer.Options{Handler: r})
	params := benchParams{A: 1, B: 2, C: "x"}
	raw := json.RawMessage(`{"A":1,"B":2}`)

	var got json.RawMessage // the caller's, which may use it again

	for _, c := range []struct {
		name       string
		most, pipe float64 // over a WebSocket, and over a Pipe, which copies each message
		do         func(ctx context.Context, c *peer.Conn) error
	}{
		// The context of the handler, and one of each pool's that lost it.
		{"typed call", 3, 5, func(ctx context.Context, c *peer.Conn) error {
			_, err := typed.Call(ctx, c, params)
			return err
		}},
		// Besides: the request, which an untyped handler may keep, and the raw values,
		// which go into an interface at each end.
		{"raw call", 5, 7, func(ctx context.Context, c *peer.Conn) error {
			return c.Call(ctx, "raw", raw, &got)
		}},
		// Besides the context, the params, which are sent by their pointer.
		// One at a time: how many are queued, and so not in the pools, is a matter of luck.
		{"notification", 4, 5, func(ctx context.Context, c *peer.Conn) error {
			err := event.Notify(ctx, c, params)
			if err == nil {
				<-handled
			}
			return err
		}},
		// WithCancel makes its context, the function that cancels, and, since this
		// is waited for, its channel.
		{"typed call that is cancelled after", 7, 9, func(ctx context.Context, c *peer.Conn) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := typed.Call(ctx, c, params)
			return err
		}},
	} {
		parent, cancel := context.WithCancel(t.Context())
		for _, over := range []struct {
			name string
			conn *peer.Conn
			most float64
		}{{"WebSocket", socket, c.most}, {"Pipe", left, c.pipe}} {
			run := func() {
				if err := c.do(parent, over.conn); err != nil {
					t.Fatal(err)
				}
			}
			for range 200 { // fills the pools
				run()
			}
			got := testing.AllocsPerRun(2000, run)
			t.Logf("%s over a %s: %v", c.name, over.name, got)
			if got > over.most {
				t.Errorf("%s over a %s makes %v allocations, want at most %v", c.name, over.name, got, over.most)
			}
		}
		cancel()
	}
}

// That a call could be cancelled costs no allocation: with a context that may end, and
// a profile that has cancels, there are as many as without both.
func TestCancelAllocates(t *testing.T) {
	typed := peer.Method[benchParams, benchParams]("typed")
	count := func(ctx context.Context, p *peer.Profile) float64 {
		var reg peer.Registry
		typed.Handle(&reg, func(_ context.Context, p benchParams) (benchParams, error) { return p, nil })
		left, _ := peertest.Pair(t, &peer.Options{Profile: p}, &peer.Options{Handler: &reg, Profile: p})
		run := func() {
			if _, err := typed.Call(ctx, left, benchParams{A: 1, B: 2, C: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 { // fills the pools
			run()
		}
		return testing.AllocsPerRun(2000, run)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	with, without := count(ctx, nil), count(context.Background(), &peer.Profile{Cancel: peer.Cancel{Off: true}})
	if with > without {
		t.Errorf("%v allocations a call with cancels, %v without", with, without)
	}
}

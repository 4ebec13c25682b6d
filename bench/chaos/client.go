package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// client is the dialling end, behind a proxy of its own.
type client struct {
	*peer.Client
	web *http.Transport
}

// newClient starts to dial. down is what comes from the server.
func newClient(address string, name string, resumed bool, buffer int64, down *lane) (*client, error) {
	c := &client{web: &http.Transport{}}
	var reg peer.Registry
	handle(&reg, func(context.Context) *lane { return down })
	opts := &peer.ClientOptions{
		Options:     options(&reg, down.tally),
		FirstWait:   5 * time.Millisecond,
		MaxWait:     50 * time.Millisecond,
		DialTimeout: 600 * time.Millisecond,
		OnConnect: func(ctx context.Context, conn *peer.Conn) error {
			return hello.Notify(ctx, conn, struct{}{})
		},
	}
	opts.WebSocket.HTTPClient = &http.Client{Transport: c.web}
	opts.WebSocket.Header = http.Header{principalHeader: {name}}
	if resumed {
		opts.OnState = func(s peer.ClientState) {
			if s.Phase == peer.Disconnected {
				down.tally.gap("client "+name, s.Err)
			}
		}
		opts = resume.Client(opts, resumption(buffer))
	}
	var err error
	if c.Client, err = peer.NewClient("ws://"+address+"/", opts); err != nil {
		return nil, fmt.Errorf("chaos: client %s: %w", name, err)
	}
	return c, nil
}

// caller is the client, whatever becomes of its connections.
func (c *client) caller(context.Context) (peer.Caller, error) { return c.Client, nil }

// close shuts the client down.
func (c *client) close(ctx context.Context) error {
	err := c.Shutdown(ctx)
	if err != nil {
		_ = c.Close()
	}
	c.web.CloseIdleConnections()
	return err
}

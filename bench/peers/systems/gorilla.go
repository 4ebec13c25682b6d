package systems

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/duetrpc/duet/bench/load"
)

// Gorilla is gorilla/websocket alone, with a system call for each message.
func Gorilla() load.System {
	return load.System{
		Name:  GorillaName,
		Kinds: []load.Kind{load.Raw, load.Notify},
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			client, server, stop, err := connectGorilla(ctx, s.Wire)
			if err != nil {
				return nil, err
			}
			var mu sync.Mutex
			var frame []byte
			p := &rawPair{
				send: func(id uint64, raw []byte, text string) error {
					mu.Lock()
					defer mu.Unlock()
					frame = appendFrame(frame[:0], id, raw, text)
					return client.WriteMessage(websocket.TextMessage, frame)
				},
				close: func() error {
					client.Close()
					server.Close()
					stop()
					return nil
				},
			}
			next := func(c *websocket.Conn) func() (io.Reader, error) {
				return func() (io.Reader, error) {
					_, r, err := c.NextReader()
					return r, err
				}
			}
			go p.readReplies(next(client))
			go p.echo(next(server), func(frame []byte) error {
				return server.WriteMessage(websocket.TextMessage, frame)
			})
			return p, nil
		},
	}
}

// connectGorilla makes a pair of gorilla/websocket connections, without compression.
func connectGorilla(ctx context.Context, wire *load.Wire) (client, server *websocket.Conn, stop func(), err error) {
	accepted := make(chan *websocket.Conn, 1)
	address, stop, err := serve(wire, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var u websocket.Upgrader
		if c, err := u.Upgrade(w, r, nil); err == nil {
			accepted <- c
		}
	}))
	if err != nil {
		return nil, nil, nil, err
	}
	d := websocket.Dialer{NetDialContext: wire.Dial}
	client, _, err = d.DialContext(ctx, "ws://"+address, nil)
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	select {
	case server = <-accepted:
		return client, server, stop, nil
	case <-ctx.Done():
		client.Close()
		stop()
		return nil, nil, nil, ctx.Err()
	}
}

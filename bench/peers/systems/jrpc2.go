package systems

import (
	"context"
	"encoding/json"

	"github.com/coder/websocket"
	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"

	"github.com/duetrpc/duet/bench/load"
)

// JRPC2 is github.com/creachadair/jrpc2 on a channel of our own, a message to a
// WebSocket frame. Its options are the defaults: as many handlers at once as there
// are processors.
func JRPC2() load.System {
	return load.System{
		Name:  JRPC2Name,
		Kinds: allKinds(),
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			ends, err := connect(ctx, s.Wire, nil, nil)
			if err != nil {
				return nil, err
			}
			p := &rpcPair{}
			server := jrpc2.NewServer(handler.Map{
				echoMethod: handler.New(func(_ context.Context, d *load.Doc) (*load.Doc, error) { return d, nil }),
				rawMethod: func(_ context.Context, req *jrpc2.Request) (any, error) {
					var text json.RawMessage
					err := req.UnmarshalParams(&text)
					return text, err
				},
				noteMethod: handler.New(func(context.Context, *load.Doc) error {
					p.handled.Add(1)
					return nil
				}),
			}, nil).Start(jrpc2Channel{ends.server})
			client := jrpc2.NewClient(jrpc2Channel{ends.client}, nil)
			p.call = func(ctx context.Context, method string, in, out any) error {
				return client.CallResult(ctx, method, in, out)
			}
			p.notify = func(ctx context.Context, method string, in any) error {
				return client.Notify(ctx, method, in)
			}
			p.close = func() error {
				err := ends.Close()
				_ = client.Close() // says that the channel was closed
				server.Stop()
				_ = server.Wait()
				return err
			}
			return p, nil
		},
	}
}

// jrpc2Channel is a channel.Channel. The library keeps what Recv returns.
type jrpc2Channel struct{ c *websocket.Conn }

func (c jrpc2Channel) Send(text []byte) error {
	return c.c.Write(context.Background(), websocket.MessageText, text)
}

func (c jrpc2Channel) Recv() ([]byte, error) {
	_, text, err := c.c.Read(context.Background())
	return text, err
}

func (c jrpc2Channel) Close() error { return c.c.CloseNow() }

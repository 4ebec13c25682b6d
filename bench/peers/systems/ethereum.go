package systems

import (
	"context"
	"encoding/json"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gorilla/websocket"

	"github.com/duetrpc/duet/bench/load"
)

// ethereumNamespace stands before the names of its methods.
const ethereumNamespace = "bench"

// Ethereum is github.com/ethereum/go-ethereum/rpc with its own WebSocket server and
// client. Params go by position, which is all it has, and its handlers run in a
// goroutine per message.
func Ethereum() load.System {
	return load.System{
		Name:  EthereumName,
		Kinds: allKinds(),
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			p := &rpcPair{}
			server := rpc.NewServer()
			if err := server.RegisterName(ethereumNamespace, &ethereumService{p}); err != nil {
				return nil, err
			}
			server.SetWebsocketReadLimit(maxMessage)
			address, stop, err := serve(s.Wire, server.WebsocketHandler(nil))
			if err != nil {
				return nil, err
			}
			client, err := rpc.DialOptions(ctx, "ws://"+address,
				rpc.WithWebsocketDialer(websocket.Dialer{NetDialContext: s.Wire.Dial}),
				rpc.WithWebsocketMessageSizeLimit(maxMessage))
			if err != nil {
				stop()
				return nil, err
			}
			p.call = func(ctx context.Context, method string, in, out any) error {
				return client.CallContext(ctx, out, ethereumNamespace+"_"+method, in)
			}
			p.notify = func(ctx context.Context, method string, in any) error {
				return client.Notify(ctx, ethereumNamespace+"_"+method, in)
			}
			p.close = func() error {
				client.Close()
				server.Stop()
				stop()
				return nil
			}
			return p, nil
		},
	}
}

// ethereumService has a method for each name: echo, raw, note.
type ethereumService struct{ p *rpcPair }

func (s *ethereumService) Echo(d load.Doc) (*load.Doc, error) { return &d, nil }

func (s *ethereumService) Raw(text json.RawMessage) (json.RawMessage, error) { return text, nil }

func (s *ethereumService) Note(load.Doc) { s.p.handled.Add(1) }

package systems

import (
	"context"
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"
	jsonrpc2ws "github.com/sourcegraph/jsonrpc2/websocket"

	"github.com/duetrpc/duet/bench/load"
)

// Sourcegraph is github.com/sourcegraph/jsonrpc2 on its own WebSocket stream, which
// is gorilla/websocket. The handler runs in the goroutine that reads, its default.
// It has no raw calls: it decodes params into an any and encodes them again, with
// the members in another order.
func Sourcegraph() load.System {
	return load.System{
		Name:  SourcegraphName,
		Kinds: []load.Kind{load.Typed, load.Notify},
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			clientEnd, serverEnd, stop, err := connectGorilla(ctx, s.Wire)
			if err != nil {
				return nil, err
			}
			p := &rpcPair{}
			server := jsonrpc2.NewConn(context.Background(), jsonrpc2ws.NewObjectStream(serverEnd),
				jsonrpc2.HandlerWithError(p.serveSourcegraph).SuppressErrClosed())
			client := jsonrpc2.NewConn(context.Background(), jsonrpc2ws.NewObjectStream(clientEnd), nil)
			p.call = func(ctx context.Context, method string, in, out any) error {
				return client.Call(ctx, method, in, out)
			}
			p.notify = func(ctx context.Context, method string, in any) error {
				return client.Notify(ctx, method, in)
			}
			p.close = func() error {
				err := client.Close()
				_ = server.Close() // may be closed already
				<-client.DisconnectNotify()
				<-server.DisconnectNotify()
				stop()
				return err
			}
			return p, nil
		},
	}
}

func (p *rpcPair) serveSourcegraph(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
	if req.Params == nil {
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: "no params"}
	}
	var d load.Doc
	if err := json.Unmarshal(*req.Params, &d); err != nil {
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()}
	}
	switch req.Method {
	case echoMethod:
		return &d, nil
	case noteMethod:
		p.handled.Add(1)
		return nil, nil
	}
	return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: req.Method}
}

package systems

import (
	"context"
	"encoding/json"
	"sync"

	"go.lsp.dev/jsonrpc2"

	"github.com/duetrpc/duet/bench/load"
)

// LSPInline is go.lsp.dev/jsonrpc2 as it comes: the handler runs in the goroutine
// that reads.
func LSPInline() load.System {
	return lsp(LSPInlineName, func(h jsonrpc2.Handler) jsonrpc2.Handler { return h })
}

// LSPAsync is go.lsp.dev/jsonrpc2 with its AsyncHandler, a goroutine per request.
// Handlers that call back need it.
func LSPAsync() load.System {
	return lsp(LSPAsyncName, jsonrpc2.AsyncHandler)
}

// lsp uses Conn, the library's mode for two equals; its PipelineClient, which cannot
// be called back, was as fast within the noise. The Stream is one of our own with a
// message to a WebSocket frame, and gives the raw access to frames that lets the
// library skip its decoder. Its own NDJSON stream over a WebSocket saves two of five
// allocations, which gave the same rate at 64 bytes and 0.6 of it at 64 KiB; its
// header stream led by a tenth at most. The codec is its default, encoding/json/v2.
func lsp(name string, mode func(jsonrpc2.Handler) jsonrpc2.Handler) load.System {
	return load.System{
		Name:  name,
		Kinds: allKinds(),
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			ends, err := connect(ctx, s.Wire, nil, nil)
			if err != nil {
				return nil, err
			}
			server := jsonrpc2.NewServer(&lspStream{messages: messages{c: ends.server}})
			client := jsonrpc2.NewPeer(&lspStream{messages: messages{c: ends.client}})
			p := &rpcPair{
				call: func(ctx context.Context, method string, in, out any) error {
					_, err := client.Call(ctx, method, in, out)
					return err
				},
				notify: client.Notify,
				close: func() error {
					err := ends.Close()
					<-client.Done()
					<-server.Done()
					return err
				},
			}
			server.Go(context.Background(), mode(p.serveLSP))
			client.Go(context.Background(), jsonrpc2.MethodNotFoundHandler)
			return p, nil
		},
	}
}

func (p *rpcPair) serveLSP(_ context.Context, req *jsonrpc2.Request) (any, error) {
	if req.Method() == rawMethod {
		return json.RawMessage(req.Params()), nil
	}
	var d load.Doc
	if err := jsonrpc2.DefaultCodec.Unmarshal(req.Params(), &d); err != nil {
		return nil, jsonrpc2.ErrInvalidParams
	}
	switch req.Method() {
	case echoMethod:
		return &d, nil
	case noteMethod:
		p.handled.Add(1)
		return nil, nil
	}
	return nil, jsonrpc2.ErrMethodNotFound
}

// lspStream is a Stream of go.lsp.dev/jsonrpc2, a message to a WebSocket frame.
type lspStream struct {
	messages
	mu  sync.Mutex // guards out
	out []byte
}

// ReadFrame and WriteFrame are the library's way to frames that it scans itself.
func (s *lspStream) ReadFrame(context.Context) ([]byte, int64, error) {
	frame, err := s.read()
	return frame, int64(len(frame)), err
}

func (s *lspStream) WriteFrame(_ context.Context, data []byte) (int64, error) {
	return int64(len(data)), s.write(data)
}

func (s *lspStream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	frame, n, err := s.ReadFrame(ctx)
	if err != nil {
		return nil, 0, err
	}
	m, err := jsonrpc2.DecodeMessage(frame)
	return m, n, err
}

func (s *lspStream) Write(_ context.Context, m jsonrpc2.Message) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = jsonrpc2.AppendMessage(s.out[:0], m)
	return int64(len(s.out)), s.write(s.out)
}

func (s *lspStream) Close() error { return s.c.CloseNow() }

package systems

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"golang.org/x/exp/jsonrpc2"

	"github.com/duetrpc/duet/bench/load"
)

// Exp is golang.org/x/exp/jsonrpc2, with a Framer of our own: a message to a
// WebSocket frame. Handlers run one after the other in a goroutine of the library.
func Exp() load.System {
	return load.System{
		Name:  ExpName,
		Kinds: allKinds(),
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			ends, err := connect(ctx, s.Wire, nil, nil)
			if err != nil {
				return nil, err
			}
			p := &rpcPair{}
			// Its Connection has no client and no server; Dial only binds it to a stream.
			server, err := jsonrpc2.Dial(context.Background(), &expStream{messages{c: ends.server}},
				jsonrpc2.ConnectionOptions{Framer: expFramer{}, Handler: jsonrpc2.HandlerFunc(p.serveExp)})
			if err != nil {
				ends.Close()
				return nil, err
			}
			client, err := jsonrpc2.Dial(context.Background(), &expStream{messages{c: ends.client}},
				jsonrpc2.ConnectionOptions{Framer: expFramer{}})
			if err != nil {
				ends.Close()
				return nil, err
			}
			p.call = func(ctx context.Context, method string, in, out any) error {
				return client.Call(ctx, method, in).Await(ctx, out)
			}
			p.notify = func(ctx context.Context, method string, in any) error {
				return client.Notify(ctx, method, in)
			}
			p.close = func() error {
				err := ends.Close()
				_ = client.Wait() // says that the stream was closed
				_ = server.Wait()
				return err
			}
			return p, nil
		},
	}
}

func (p *rpcPair) serveExp(_ context.Context, req *jsonrpc2.Request) (any, error) {
	if req.Method == rawMethod {
		return req.Params, nil
	}
	var d load.Doc
	if err := json.Unmarshal(req.Params, &d); err != nil {
		return nil, jsonrpc2.ErrInvalidParams
	}
	switch req.Method {
	case echoMethod:
		return &d, nil
	case noteMethod:
		p.handled.Add(1)
		return nil, nil
	}
	return nil, jsonrpc2.ErrMethodNotFound
}

// expStream is what the library believes to be a stream of bytes. Only expFramer
// uses it.
type expStream struct{ messages }

// Dial makes it the jsonrpc2.Dialer of itself.
func (s *expStream) Dial(context.Context) (io.ReadWriteCloser, error) { return s, nil }

func (s *expStream) Read([]byte) (int, error)    { return 0, errors.ErrUnsupported }
func (s *expStream) Write(p []byte) (int, error) { return len(p), s.write(p) }
func (s *expStream) Close() error                { return s.c.CloseNow() }

type (
	expFramer struct{}
	expReader struct{ c io.Reader }
	expWriter struct{ c io.Writer }
)

func (expFramer) Reader(r io.Reader) jsonrpc2.Reader { return expReader{r} }
func (expFramer) Writer(w io.Writer) jsonrpc2.Writer { return expWriter{w} }

func (r expReader) Read(context.Context) (jsonrpc2.Message, int64, error) {
	s, ok := r.c.(*expStream)
	if !ok {
		return nil, 0, errors.New("systems: a stream that is not ours")
	}
	text, err := s.read()
	if err != nil {
		return nil, 0, io.EOF
	}
	m, err := jsonrpc2.DecodeMessage(text)
	return m, int64(len(text)), err
}

func (w expWriter) Write(_ context.Context, m jsonrpc2.Message) (int64, error) {
	text, err := jsonrpc2.EncodeMessage(m)
	if err != nil {
		return 0, err
	}
	n, err := w.c.Write(text)
	return int64(n), err
}

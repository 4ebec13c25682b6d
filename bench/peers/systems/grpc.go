package systems

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems/echopb"
)

// grpcWindow is flow control's window. One that is set turns off the estimator of
// the bandwidth-delay product, which sends a ping now and then.
const grpcWindow = 8 << 20

// openGRPC makes a server and a connection to it on the wire, without TLS.
func openGRPC(s load.Setup, echo echopb.EchoServer, options ...grpc.ServerOption) (*grpc.ClientConn, func() error, error) {
	l, err := s.Wire.Listen()
	if err != nil {
		return nil, nil, err
	}
	server := grpc.NewServer(append(options,
		grpc.InitialWindowSize(grpcWindow),
		grpc.InitialConnWindowSize(grpcWindow),
		grpc.MaxRecvMsgSize(maxMessage),
	)...)
	echopb.RegisterEchoServer(server, echo)
	go server.Serve(l)
	client, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return s.Wire.Dial(ctx, "tcp", address)
		}),
		grpc.WithInitialWindowSize(grpcWindow),
		grpc.WithInitialConnWindowSize(grpcWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
	)
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	return client, func() error {
		err := client.Close()
		server.Stop()
		return err
	}, nil
}

// GRPCUnary is grpc-go as it is meant to be used: a unary call.
func GRPCUnary() load.System {
	return load.System{
		Name:  GRPCUnaryName,
		Kinds: []load.Kind{load.Typed},
		Open: func(_ context.Context, s load.Setup) (load.Pair, error) {
			client, stop, err := openGRPC(s, unaryEcho{}, grpc.NumStreamWorkers(uint32(runtime.NumCPU())))
			if err != nil {
				return nil, err
			}
			return &unaryPair{echopb.NewEchoClient(client), stop}, nil
		},
	}
}

type unaryEcho struct{ echopb.UnimplementedEchoServer }

func (unaryEcho) Call(_ context.Context, d *echopb.Doc) (*echopb.Doc, error) { return d, nil }

type unaryPair struct {
	client echopb.EchoClient
	close  func() error
}

func (p *unaryPair) Call(ctx context.Context, in, out *load.Doc) error {
	d, err := p.client.Call(ctx, &echopb.Doc{Seq: in.Seq, Text: in.Text, Lines: in.Lines})
	if err != nil {
		return err
	}
	out.Seq, out.Text, out.Lines = d.Seq, d.Text, d.Lines
	return nil
}

var errNoRaw = errors.New("systems: gRPC has no JSON text to pass on")

func (p *unaryPair) CallRaw(context.Context, json.RawMessage, *json.RawMessage) error {
	return errNoRaw
}

func (p *unaryPair) Notify(context.Context, *load.Doc) error {
	return errors.New("systems: gRPC answers every unary call")
}

func (p *unaryPair) Handled() uint64 { return 0 }

func (p *unaryPair) Close() error { return p.close() }

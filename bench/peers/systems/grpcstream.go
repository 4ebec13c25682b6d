package systems

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems/echopb"
)

// GRPCStream is one bidirectional stream of grpc-go used as a call channel, as it is
// built where calls both ways are wanted: an envelope with an id and the name of a
// method, a table of who waits, and a goroutine that sends. Handlers run inline in
// the receiving goroutine, which is its fastest way here.
func GRPCStream() load.System {
	return load.System{
		Name:  GRPCStreamName,
		Kinds: []load.Kind{load.Typed, load.Notify},
		Open: func(_ context.Context, s load.Setup) (load.Pair, error) {
			echo := &streamEcho{}
			client, stop, err := openGRPC(s, echo)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithCancel(context.Background())
			stream, err := echopb.NewEchoClient(client).Channel(ctx)
			if err != nil {
				cancel()
				stop()
				return nil, err
			}
			p := &streamPair{
				echo:    echo,
				out:     make(chan *echopb.Envelope, streamQueue),
				ended:   ctx.Done(),
				waiting: make(map[uint64]chan *echopb.Envelope),
				close: func() error {
					cancel()
					return stop()
				},
			}
			go func() {
				defer cancel()
				sendAll(stream, p.out, ctx.Done())
			}()
			go func() {
				defer cancel()
				p.receive(stream)
			}()
			return p, nil
		},
	}
}

// streamQueue is how many envelopes may wait for the sending goroutine.
const streamQueue = 1024

// sendAll sends what comes until ended.
func sendAll(stream interface{ Send(*echopb.Envelope) error }, out <-chan *echopb.Envelope, ended <-chan struct{}) {
	for {
		select {
		case e := <-out:
			if stream.Send(e) != nil {
				return
			}
		case <-ended:
			return
		}
	}
}

// streamPair is the calling end of a stream.
type streamPair struct {
	echo  *streamEcho
	out   chan *echopb.Envelope
	ended <-chan struct{}
	close func() error
	ids   atomic.Uint64
	chans sync.Pool // of chan *echopb.Envelope, empty

	mu      sync.Mutex
	waiting map[uint64]chan *echopb.Envelope
}

var errStreamEnded = errors.New("systems: the gRPC stream has ended")

func (p *streamPair) Call(ctx context.Context, in, out *load.Doc) error {
	id := p.ids.Add(1)
	answer, _ := p.chans.Get().(chan *echopb.Envelope)
	if answer == nil {
		answer = make(chan *echopb.Envelope, 1)
	}
	p.mu.Lock()
	p.waiting[id] = answer
	p.mu.Unlock()
	err := p.send(ctx, &echopb.Envelope{Id: id, Method: echoMethod, Seq: in.Seq, Text: in.Text, Lines: in.Lines})
	if err == nil {
		select {
		case d := <-answer:
			out.Seq, out.Text, out.Lines = d.Seq, d.Text, d.Lines
			p.chans.Put(answer)
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-p.ended:
			err = errStreamEnded
		}
	}
	p.mu.Lock()
	delete(p.waiting, id)
	p.mu.Unlock()
	return err
}

func (p *streamPair) send(ctx context.Context, e *echopb.Envelope) error {
	select {
	case p.out <- e:
		return nil
	default:
	}
	select {
	case p.out <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ended:
		return errStreamEnded
	}
}

func (p *streamPair) receive(stream echopb.Echo_ChannelClient) {
	for {
		e, err := stream.Recv()
		if err != nil {
			return
		}
		p.mu.Lock()
		answer := p.waiting[e.Id]
		delete(p.waiting, e.Id)
		p.mu.Unlock()
		if answer != nil {
			answer <- e
		}
	}
}

func (p *streamPair) CallRaw(context.Context, json.RawMessage, *json.RawMessage) error {
	return errNoRaw
}

func (p *streamPair) Notify(ctx context.Context, in *load.Doc) error {
	return p.send(ctx, &echopb.Envelope{Method: noteMethod, Seq: in.Seq, Text: in.Text, Lines: slices.Clone(in.Lines)})
}

func (p *streamPair) Handled() uint64 { return p.echo.handled.Load() }

func (p *streamPair) Close() error { return p.close() }

// streamEcho is the echoing end of a stream.
type streamEcho struct {
	echopb.UnimplementedEchoServer
	handled atomic.Uint64
}

func (s *streamEcho) Channel(stream echopb.Echo_ChannelServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	out := make(chan *echopb.Envelope, streamQueue)
	go func() {
		defer cancel()
		sendAll(stream, out, ctx.Done())
	}()
	for {
		e, err := stream.Recv()
		if err != nil {
			return err
		}
		switch e.Method {
		case echoMethod:
			e.Method = "" // what was received is ours, and goes back
			select {
			case out <- e:
			case <-ctx.Done():
				return ctx.Err()
			}
		case noteMethod:
			s.handled.Add(1)
		}
	}
}

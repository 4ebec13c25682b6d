package ethereum_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// go-ethereum is the client, duet the server.

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

const (
	add   = peer.Method[pair, int]("eth_add")
	note  = peer.Notification[[]int]("eth_note")
	heads = stream.Topic[span, header]("newHeads") // from From to To, then silence
	brief = stream.Topic[span, header]("brief")    // the same, and then an error
)

// duetServer is a server and what its handlers tell.
type duetServer struct {
	*peer.Server
	url    string
	topics stream.Topics
	notes  chan int
	ended  chan error // the causes that publishers ended with
}

func newDuetServer(t *testing.T) *duetServer {
	t.Helper()
	s := &duetServer{topics: stream.Topics{Namespace: "eth"}, notes: make(chan int, 1000), ended: make(chan error, 3000)}
	publish := func(in span, send func(header) error) error {
		for n := in.From; n <= in.To; n++ {
			if err := send(headerOf(n)); err != nil {
				return err
			}
		}
		return nil
	}
	heads.Handle(&s.topics, func(ctx context.Context, in span, send func(header) error) error {
		if err := publish(in, send); err != nil {
			s.ended <- err
			return err
		}
		<-ctx.Done()
		s.ended <- context.Cause(ctx)
		return nil
	})
	brief.Handle(&s.topics, func(_ context.Context, in span, send func(header) error) error {
		if err := publish(in, send); err != nil {
			return err
		}
		return &peer.Error{Code: 7, Message: "no more"}
	})
	var reg peer.Registry
	s.topics.Register(&reg)
	add.Handle(&reg, func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil }, peer.Positional())
	note.Handle(&reg, func(_ context.Context, in []int) error {
		s.notes <- in[0]
		return nil
	})
	s.Server = peer.NewServer(&peer.Options{Handler: peer.Chain(&reg, linger)})
	t.Cleanup(func() { _ = s.Close() })
	s.url = serve(t, s)
	return s
}

// linger keeps answers back, so that whoever does not wait for them is ahead.
func linger(h peer.Handler) peer.Handler {
	return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
		result, err := h.ServeRPC(ctx, req)
		for range 20 {
			runtime.Gosched()
		}
		return result, err
	})
}

func gethClient(t *testing.T, url string) *rpc.Client {
	t.Helper()
	c, err := rpc.DialContext(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestGethClientCalls(t *testing.T) {
	s := newDuetServer(t)
	c := gethClient(t, s.url)
	var sum int
	if err := c.CallContext(t.Context(), &sum, "eth_add", 1, 2); err != nil || sum != 3 {
		t.Errorf("eth_add = %d, %v", sum, err)
	}
	if err := c.CallContext(t.Context(), &sum, "eth_add", 1, "x"); gethCode(err) != -32602 {
		t.Errorf("eth_add of a string: %v", err)
	}
	if err := c.CallContext(t.Context(), &sum, "eth_nothing"); gethCode(err) != -32601 {
		t.Errorf("a method that is none: %v", err)
	}
	for i := range 1000 {
		if err := c.Notify(t.Context(), "eth_note", i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		if n := receive(t, "notification", s.notes); n != i {
			t.Fatalf("notification %d came in the place of %d", n, i)
		}
	}
}

func TestGethClientBatch(t *testing.T) {
	s := newDuetServer(t)
	c := gethClient(t, s.url)
	sums := make([]int, 100)
	batch := make([]rpc.BatchElem, len(sums)+1)
	for i := range sums {
		batch[i] = rpc.BatchElem{Method: "eth_add", Args: []any{i, 1}, Result: &sums[i]}
	}
	batch[len(sums)] = rpc.BatchElem{Method: "eth_nothing", Result: new(int)}
	if err := c.BatchCallContext(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for i := range sums {
		if sums[i] != i+1 || batch[i].Error != nil {
			t.Errorf("element %d: %d, %v", i, sums[i], batch[i].Error)
		}
	}
	if err := batch[len(sums)].Error; gethCode(err) != -32601 {
		t.Errorf("a method that is none: %v", err)
	}
}

// follow subscribes and takes the headers of in, in order.
func follow(ctx context.Context, t *testing.T, c *rpc.Client, in span) *rpc.ClientSubscription {
	t.Helper()
	got := make(chan header)
	sub, err := c.Subscribe(ctx, "eth", got, "newHeads", in.From, in.To)
	if err != nil {
		t.Error(err)
		return nil
	}
	for n := in.From; n <= in.To; n++ {
		select {
		case h := <-got:
			if h != headerOf(n) {
				t.Errorf("header %d came in the place of %d", h.Number, n)
				return sub
			}
		case err := <-sub.Err():
			t.Errorf("before header %d: %v", n, err)
			return sub
		case <-ctx.Done():
			t.Errorf("waiting for header %d: %v", n, ctx.Err())
			return sub
		}
	}
	return sub
}

// Many items arrive in order, and Unsubscribe ends the publisher.
func TestGethClientSubscribes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newDuetServer(t)
	c := gethClient(t, s.url)
	sub := follow(ctx, t, c, span{1, 5000})
	sub.Unsubscribe()
	if err := receive(t, "end of the publisher", s.ended); err != stream.ErrUnsubscribed {
		t.Errorf("the publisher ended with %v", err)
	}
	if err, open := <-sub.Err(); open {
		t.Errorf("the subscription ended with %v", err)
	}
	if _, err := c.Subscribe(ctx, "eth", make(chan header), "nothing"); gethCode(err) != -32602 {
		t.Errorf("a topic that is none: %v", err)
	}
	if _, err := c.Subscribe(ctx, "eth", make(chan header), "newHeads", "x"); gethCode(err) != -32602 {
		t.Errorf("an argument that does not fit: %v", err)
	}
	var known bool
	if err := c.CallContext(ctx, &known, "eth_unsubscribe", "0x1"); err != nil || known {
		t.Errorf("an id that is none: %v, %v", known, err)
	}
}

// The client drops what comes before the answer, so that an item that did would be
// missing.
func TestGethClientAnswersFirst(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newDuetServer(t)
	c := gethClient(t, s.url)
	for range 300 {
		sub := follow(ctx, t, c, span{1, 3})
		if t.Failed() {
			return
		}
		sub.Unsubscribe()
	}
}

// Many at a time do not get in each other's way.
func TestGethClientSubscribesOften(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newDuetServer(t)
	c := gethClient(t, s.url)
	const many = 50
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if sub := follow(ctx, t, c, span{i, i + 100}); sub != nil {
				sub.Unsubscribe()
			}
		})
	}
	wg.Wait()
	for range many {
		if err := receive(t, "end of a publisher", s.ended); err != stream.ErrUnsubscribed {
			t.Errorf("a publisher ended with %v", err)
		}
	}
}

// The client is told of the end of the server, and of that of a publisher, whose error
// it does not know how to read.
func TestGethClientToldOfTheEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newDuetServer(t)
	c := gethClient(t, s.url)
	got := make(chan header, 3)
	sub, err := c.Subscribe(ctx, "eth", got, "brief", 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "end", sub.Err()); err == nil {
		t.Error("the publisher's error ends it without one")
	}
	sub = follow(ctx, t, c, span{1, 3})
	_ = s.Close()
	if err := receive(t, "end", sub.Err()); err == nil {
		t.Error("the end of the server ends it without an error")
	}
	if err := receive(t, "end of the publisher", s.ended); !errors.Is(err, peer.ErrClosed) {
		t.Errorf("the publisher ended with %v", err)
	}
}

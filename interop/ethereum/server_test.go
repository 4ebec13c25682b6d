package ethereum_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// go-ethereum is the server, duet the client.

// service is what go-ethereum serves under "eth": its exported methods.
type service struct {
	start chan struct{} // closed by Start
	ended chan error    // nil for each subscription that was ended by the client
}

func (s *service) Add(a, b int) int { return a + b }

func (s *service) Start() { close(s.start) }

// NewHeads is the topic newHeads. What is sent before the answer go-ethereum keeps, and
// sends right behind it.
func (s *service) NewHeads(ctx context.Context, from int, to *int) (*rpc.Subscription, error) {
	open := make(chan struct{})
	close(open)
	return s.publish(ctx, open, from, to)
}

// Later is the same after Start.
func (s *service) Later(ctx context.Context, from int, to *int) (*rpc.Subscription, error) {
	return s.publish(ctx, s.start, from, to)
}

func (s *service) publish(ctx context.Context, start <-chan struct{}, from int, to *int) (*rpc.Subscription, error) {
	notifier, ok := rpc.NotifierFromContext(ctx)
	if !ok {
		return nil, rpc.ErrNotificationsUnsupported
	}
	sub := notifier.CreateSubscription()
	go func() {
		<-start
		for n := from; to != nil && n <= *to; n++ {
			if err := notifier.Notify(sub.ID, headerOf(n)); err != nil {
				s.ended <- err
				return
			}
		}
		s.ended <- <-sub.Err()
	}()
	return sub, nil
}

// gethServer returns a connection to a server of go-ethereum.
func gethServer(t *testing.T) (*rpc.Server, *service, *peer.Conn) {
	t.Helper()
	s := &service{start: make(chan struct{}), ended: make(chan error, 3000)}
	server := rpc.NewServer()
	if err := server.RegisterName("eth", s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	conn, err := peer.Dial(t.Context(), serve(t, server.WebsocketHandler(nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		receive(t, "end of the connection", conn.Done())
	})
	return server, s, conn
}

func newSubscriber(t *testing.T, conn *peer.Conn) *stream.Subscriber {
	t.Helper()
	s, err := stream.NewSubscriber(conn, "eth")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGethServerCalls(t *testing.T) {
	_, _, conn := gethServer(t)
	var sum int
	if err := conn.Call(t.Context(), "eth_add", []int{1, 2}, &sum); err != nil || sum != 3 {
		t.Errorf("eth_add = %d, %v", sum, err)
	}
	if err := conn.Call(t.Context(), "eth_add", []any{1, "x"}, &sum); !errors.Is(err, &peer.Error{Code: -32602}) {
		t.Errorf("eth_add of a string: %v", err)
	}
	if err := conn.Call(t.Context(), "eth_nothing", nil, nil); !errors.Is(err, &peer.Error{Code: -32601}) {
		t.Errorf("a method that is none: %v", err)
	}
	sums := make([]int, 100)
	batch := make([]peer.BatchItem, len(sums)+1)
	for i := range sums {
		batch[i] = peer.BatchItem{Method: "eth_add", Params: []int{i, 1}, Result: &sums[i]}
	}
	batch[len(sums)] = peer.BatchItem{Method: "eth_nothing"}
	if err := conn.Batch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for i := range sums {
		if sums[i] != i+1 || batch[i].Err != nil {
			t.Errorf("item %d: %d, %v", i, sums[i], batch[i].Err)
		}
	}
	if err := batch[len(sums)].Err; !errors.Is(err, &peer.Error{Code: -32601}) {
		t.Errorf("a method that is none: %v", err)
	}
}

// take takes the headers of in, in order, and leaves the loop.
func take(t *testing.T, s *stream.Subscriber, in span) *stream.Subscription[header] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sub, err := heads.Subscribe(ctx, s, in)
	if err != nil {
		t.Error(err)
		return nil
	}
	next := in.From
	for h, err := range sub.All() {
		if err != nil || h != headerOf(next) {
			t.Errorf("header %d, %v; want %d", h.Number, err, next)
			break
		}
		if next++; next > in.To {
			break
		}
	}
	return sub
}

// Many items arrive in order, and leaving the loop ends the publisher.
func TestGethServerSubscribe(t *testing.T) {
	_, service, conn := gethServer(t)
	s := newSubscriber(t, conn)
	if err := take(t, s, span{1, 5000}).Unsubscribe(); err != nil {
		t.Error(err)
	}
	if err := receive(t, "end of the publisher", service.ended); err != nil {
		t.Errorf("the publisher ended with %v", err)
	}
	if _, err := stream.Topic[struct{}, header]("nothing").Subscribe(t.Context(), s, struct{}{}); !errors.Is(err, &peer.Error{Code: -32601}) {
		t.Errorf("a topic that is none: %v", err)
	}
	if _, err := stream.Topic[[]string, header]("newHeads").Subscribe(t.Context(), s, []string{"x"}); !errors.Is(err, &peer.Error{Code: -32602}) {
		t.Errorf("an argument that does not fit: %v", err)
	}
	if n := s.Dropped(); n != 0 {
		t.Errorf("%d notifications belonged to nobody", n)
	}
}

// What the server sends right behind the answer is there, and nothing is lost where many
// subscribe at a time.
func TestGethServerSubscribeOften(t *testing.T) {
	_, service, conn := gethServer(t)
	s := newSubscriber(t, conn)
	const many, times = 20, 10
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			for range times {
				sub := take(t, s, span{i, i + 20})
				if sub == nil {
					return
				}
				if err := sub.Unsubscribe(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for range many * times {
		if err := receive(t, "end of a publisher", service.ended); err != nil {
			t.Fatalf("a publisher ended with %v", err)
		}
	}
}

// A client that is too slow is told, and unsubscribes; the connection goes on.
func TestGethServerSlowConsumer(t *testing.T) {
	_, service, conn := gethServer(t)
	s := newSubscriber(t, conn)
	sub, err := stream.Topic[span, header]("later").Subscribe(t.Context(), s, span{1, 500}, stream.Buffer(100, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Call(t.Context(), "eth_start", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "end of the publisher", service.ended); err != nil {
		t.Errorf("the publisher ended with %v", err)
	}
	next := 1
	for h, err := range sub.All() {
		if err != nil {
			if next != 101 || err != stream.ErrSlowConsumer {
				t.Errorf("after %d headers: %v", next-1, err)
			}
			break
		}
		if h != headerOf(next) {
			t.Fatalf("header %d came in the place of %d", h.Number, next)
		}
		next++
	}
	take(t, s, span{1, 10})
}

// The end of the server ends the loop with the cause of the connection.
func TestGethServerStops(t *testing.T) {
	server, _, conn := gethServer(t)
	s := newSubscriber(t, conn)
	sub, err := stream.Topic[[]int, header]("newHeads").Subscribe(t.Context(), s, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for _, err := range sub.All() {
			ended <- err
		}
	}()
	server.Stop()
	err = receive(t, "end", ended)
	if receive(t, "end of the connection", conn.Done()); !errors.Is(err, context.Cause(conn.Context())) {
		t.Errorf("the loop ended with %v, the connection with %v", err, context.Cause(conn.Context()))
	}
}

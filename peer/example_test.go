package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/duetrpc/duet/peer"
)

// Two ends share a contract; the handler of one calls the other back while its
// own call is open.
func Example() {
	type task struct {
		Goal string `json:"goal"`
	}
	const (
		run  = peer.Method[task, string]("agent.run")
		read = peer.Method[task, string]("fs.read")
	)
	ctx := context.Background()

	var agent peer.Registry
	run.Handle(&agent, func(ctx context.Context, in task) (string, error) {
		client, _ := peer.CallerFrom(ctx)
		text, err := read.Call(ctx, client, in)
		return "read: " + text, err
	})
	server := httptest.NewServer(peer.NewServer(&peer.Options{Handler: &agent}))
	defer server.Close()

	var tools peer.Registry
	read.Handle(&tools, func(_ context.Context, in task) (string, error) {
		return in.Goal + ", world", nil
	})
	conn, err := peer.Dial(ctx, server.URL, &peer.Options{Handler: &tools})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Call(ctx, conn, task{"hello"}))
	_ = conn.Shutdown(ctx)
	// Output: read: hello, world <nil>
}

// An application's error keeps its code, message and data.
func ExampleError() {
	const notFound = 1404
	var reg peer.Registry
	reg.Handle("find", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
		return nil, &peer.Error{Code: notFound, Message: "no such room", Data: json.RawMessage(`{"room":"go"}`)}
	}))
	a, b := peer.Pipe()
	server := peer.New(a, &peer.Options{Handler: &reg})
	client := peer.New(b, nil)
	defer server.Close()
	defer client.Close()

	err := client.Call(context.Background(), "find", nil, nil)
	var e *peer.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code, e.Message, string(e.Data))
	}
	fmt.Println(errors.Is(err, &peer.Error{Code: notFound}))
	// Output:
	// 1404 no such room {"room":"go"}
	// true
}

type exampleUser struct{}

// The values of the context that Authorize returns reach the handlers, and are
// those of Conn.Context.
func ExampleOptions_authorize() {
	var reg peer.Registry
	reg.Handle("whoami", peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
		return ctx.Value(exampleUser{}), nil
	}))
	server := httptest.NewServer(peer.NewServer(&peer.Options{
		Handler: &reg,
		Authorize: func(r *http.Request) (context.Context, error) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				return nil, errors.New("no such token")
			}
			return context.WithValue(r.Context(), exampleUser{}, "ann"), nil
		},
	}))
	defer server.Close()

	var opts peer.Options
	opts.WebSocket.Header = http.Header{"Authorization": {"Bearer secret"}}
	conn, err := peer.Dial(context.Background(), server.URL, &opts)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	var name string
	err = conn.Call(context.Background(), "whoami", nil, &name)
	fmt.Println(name, err)
	// Output: ann <nil>
}

// Middleware wraps the handling of calls and notifications.
func ExampleChain() {
	var reg peer.Registry
	reg.Handle("echo", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
		return req.Params, nil
	}))
	timed := func(next peer.Handler) peer.Handler {
		return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			result, err := next.ServeRPC(ctx, req)
			fmt.Println(req.Method, err)
			return result, err
		})
	}
	a, b := peer.Pipe()
	server := peer.New(a, &peer.Options{Handler: peer.Chain(&reg, timed)})
	client := peer.New(b, nil)
	defer server.Close()
	defer client.Close()
	var got []int
	_ = client.Call(context.Background(), "echo", []int{1, 2}, &got)
	fmt.Println(got)
	// Output:
	// echo <nil>
	// [1 2]
}

// A batch goes out as one array; each item has its own outcome.
func ExampleConn_Batch() {
	var reg peer.Registry
	peer.Method[[]int, int]("sum").Handle(&reg, func(_ context.Context, in []int) (total int, err error) {
		for _, n := range in {
			total += n
		}
		return total, nil
	})
	a, b := peer.Pipe()
	server := peer.New(a, &peer.Options{Handler: &reg})
	client := peer.New(b, nil)
	defer server.Close()
	defer client.Close()

	var sum int
	items := []peer.BatchItem{
		{Method: "sum", Params: []int{1, 2, 3}, Result: &sum},
		{Method: "product", Params: []int{1, 2, 3}},
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(client.Batch(ctx, items), sum)
	fmt.Println(items[1].Err)
	// Output:
	// <nil> 6
	// peer: call "product": jsonrpc error -32601: method not found
}

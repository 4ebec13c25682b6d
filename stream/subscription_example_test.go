package stream_test

import (
	"context"
	"fmt"
	"log"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

type header struct {
	Number int `json:"number"`
}

const heads = stream.Topic[struct{}, header]("newHeads") // shared

func ExampleTopic() {
	// The end that publishes.
	topics := stream.Topics{Namespace: "eth"}
	heads.Handle(&topics, func(ctx context.Context, _ struct{}, send func(header) error) error {
		for n := 1; ; n++ {
			if err := send(header{n}); err != nil {
				return err
			}
		}
	})
	var reg peer.Registry
	topics.Register(&reg)
	a, b := peer.Pipe()
	server, client := peer.New(a, &peer.Options{Handler: &reg}), peer.New(b, nil)
	defer server.Close()
	defer client.Close()

	// The end that subscribes.
	subscriber, err := stream.NewSubscriber(client, "eth")
	if err != nil {
		log.Fatal(err)
	}
	sub, err := heads.Subscribe(context.Background(), subscriber, struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	for h, err := range sub.All() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(h.Number)
		if h.Number == 3 {
			break // unsubscribes
		}
	}
	// Output:
	// 1
	// 2
	// 3
}

// Command client is the simplest client.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/duetrpc/duet/peer"
)

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

const add = peer.Method[pair, int]("add")

func main() {
	ctx := context.Background()
	conn, err := peer.Dial(ctx, "ws://127.0.0.1:8080/", nil)
	if err != nil {
		log.Fatal(err)
	}
	sum, err := add.Call(ctx, conn, pair{1, 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
	_ = conn.Shutdown(ctx)
}

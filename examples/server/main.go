// Command server is the simplest server.
package main

import (
	"context"
	"log"
	"log/slog"
	"net/http"

	"github.com/duetrpc/duet/peer"
)

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

const add = peer.Method[pair, int]("add")

func main() {
	var reg peer.Registry
	add.Handle(&reg, func(ctx context.Context, in pair) (int, error) {
		return in.A + in.B, nil
	})
	server := peer.NewServer(&peer.Options{Handler: &reg, Logger: slog.Default()})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", server))
}

package peer_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

type benchParams struct {
	A, B int
	C    string
}

const (
	benchTyped = peer.Method[benchParams, benchParams]("typed")
	benchEvent = peer.Notification[benchParams]("event")
)

// benchPair is two peers over a Pipe, the second of which has handlers.
func benchPair(b *testing.B) *peer.Conn {
	r := &peer.Registry{}
	benchTyped.Handle(r, func(_ context.Context, p benchParams) (benchParams, error) { return p, nil })
	benchEvent.Handle(r, func(context.Context, benchParams) error { return nil })
	r.Handle("raw", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) { return req.Params, nil }))
	conn, _ := peertest.Pair(b, nil, &peer.Options{Handler: r})
	b.ReportAllocs()
	return conn
}

func BenchmarkTypedCall(b *testing.B) {
	conn := benchPair(b)
	for b.Loop() {
		if _, err := benchTyped.Call(b.Context(), conn, benchParams{A: 1, C: "x"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTypedCallParallel(b *testing.B) {
	conn := benchPair(b)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := benchTyped.Call(b.Context(), conn, benchParams{A: 1, C: "x"}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkRawCall(b *testing.B) {
	conn := benchPair(b)
	params := json.RawMessage(`{"A":1,"B":2,"C":"x"}`)
	var got json.RawMessage
	for b.Loop() {
		if err := conn.Call(b.Context(), "raw", params, &got); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNotification ends with a call, which waits until all were handled.
func BenchmarkNotification(b *testing.B) {
	conn := benchPair(b)
	for n := 1; b.Loop(); n++ {
		if err := benchEvent.Notify(b.Context(), conn, benchParams{A: 1, C: "x"}); err != nil {
			b.Fatal(err)
		}
		if n%256 == 0 { // the other end bounds how many may wait
			if _, err := benchTyped.Call(b.Context(), conn, benchParams{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

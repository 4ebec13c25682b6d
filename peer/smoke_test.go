package peer_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
)

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

const add = peer.Method[pair, int]("add")

func TestSmoke(t *testing.T) {
	var reg peer.Registry
	add.Handle(&reg, func(ctx context.Context, in pair) (int, error) {
		c, _ := peer.CallerFrom(ctx)
		var out []int
		if err := c.Call(ctx, "double", []int{in.A + in.B}, &out); err != nil {
			return 0, err
		}
		return out[0], nil
	}, peer.Positional())
	s := peer.NewServer(&peer.Options{Handler: &reg})
	hs := httptest.NewServer(s)
	defer hs.Close()
	var creg peer.Registry
	creg.Handle("double", peer.HandlerFunc(func(ctx context.Context, r *peer.Request) (any, error) {
		var in []int
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		return []int{2 * in[0]}, nil
	}))
	c, err := peer.Dial(t.Context(), "ws"+strings.TrimPrefix(hs.URL, "http"), &peer.Options{Handler: &creg})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		got, err := add.Call(t.Context(), c, pair{i, 2})
		if err != nil || got != 2*(i+2) {
			t.Fatal(got, err)
		}
	}
	var v int
	err = c.Call(t.Context(), "add", []any{1, "x"}, &v)
	t.Log(err, string(err.(*peer.CallError).Err.(*peer.Error).Data))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	t.Log(c.Err(), c.Stats())
}

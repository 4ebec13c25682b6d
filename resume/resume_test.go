package resume_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/peer"
)

const add = peer.Method[[]int, int]("add")

func sum(_ context.Context, in []int) (int, error) {
	total := 0
	for _, n := range in {
		total += n
	}
	return total, nil
}

func TestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		add.Handle(&reg, sum)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		for i := range 50 {
			got, err := add.Call(t.Context(), c, []int{i, 1})
			if err != nil || got != i+1 {
				t.Fatalf("call %d: %d, %v", i, got, err)
			}
			w.cut()
		}
		if sockets, conns := w.count(); sockets < 50 || conns != 1 {
			t.Errorf("%d sockets and %d connections, want 50 and 1", sockets, conns)
		}
	})
}

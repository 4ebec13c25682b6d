package load_test

import (
	"testing"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		name   string
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{"of none", nil, 0.5, 0},
		{"of one", []time.Duration{7}, 0.999, 7},
		{"least", hundred, 0, 1},
		{"median of an even number", hundred, 0.5, 50},
		{"median of an odd number", []time.Duration{1, 2, 3}, 0.5, 2},
		{"99 of 100", hundred, 0.99, 99},
		{"99.9 of 100", hundred, 0.999, 100},
		{"99 of 10", hundred[:10], 0.99, 10},
		{"all", hundred, 1, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := load.Percentile(c.sorted, c.p); got != c.want {
				t.Errorf("Percentile(%d values, %v) = %d, want %d", len(c.sorted), c.p, got, c.want)
			}
		})
	}
}

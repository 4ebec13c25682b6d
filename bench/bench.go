package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

// bench is a run of all rounds, and what came of it.
type bench struct {
	config
	system load.System
	screen *screen

	results []load.Result
	idle    []load.Memory
}

// play measures round by round, so that a slow minute of the machine falls on
// all loads alike.
func (b *bench) play(ctx context.Context) error {
	for round := 1; round <= b.rounds; round++ {
		for _, s := range b.steps {
			if err := ctx.Err(); err != nil {
				return err
			}
			b.screen.next(round, b.rounds, s.Name)
			if err := b.step(ctx, s, round); err != nil {
				return err
			}
		}
	}
	return nil
}

// step measures one line of the table.
func (b *bench) step(ctx context.Context, s step, round int) error {
	if s.idle > 0 {
		m, err := load.Idle(ctx, s.idle, load.DuetHandler(s.idle))
		if err != nil {
			return err
		}
		b.idle = append(b.idle, m)
		return nil
	}
	r, err := b.run(ctx, s.Load)
	if err != nil {
		return err
	}
	r.System, r.Round = b.system.Name, round
	b.results = append(b.results, r)
	return nil
}

// run puts l on a pair of its own: what one load leaves behind, a grown pool for
// instance, is not there for the next.
func (b *bench) run(ctx context.Context, l load.Load) (load.Result, error) {
	wire := new(load.Wire)
	opening, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pair, err := b.system.Open(opening, load.Setup{Wire: wire, TLS: l.TLS, Resume: l.Resume, Methods: l.Methods})
	if err != nil {
		return load.Result{}, fmt.Errorf("%s: %w", l.Name, err)
	}
	r, err := load.Run(ctx, pair, wire, l, b.time)
	return r, errors.Join(err, pair.Close())
}

// median is the middle one; of an even number the mean of the middle two.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

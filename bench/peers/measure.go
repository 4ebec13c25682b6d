package main

import (
	"context"
	"fmt"
	"time"
)

// bench measures a plan.
type bench struct {
	rounds   int
	time     time.Duration // of each load in each round
	progress *progress
	report   *report

	processes map[string]*process
	failures  map[string]int // by system
}

// maxFailures is how often a child may fail before its system is given up.
const maxFailures = 2

// run measures group by group, in rounds: what is compared is measured within
// seconds of each other, since the speed of a machine drifts.
func (b *bench) run(ctx context.Context, groups []group) {
	b.processes = make(map[string]*process)
	b.failures = make(map[string]int)
	defer func() {
		for _, p := range b.processes {
			p.stop()
		}
	}()
	for _, g := range groups {
		for _, c := range g.cells {
			b.report.Planned = append(b.report.Planned, c.key())
		}
		for round := range b.rounds {
			for _, c := range g.cells {
				if ctx.Err() != nil {
					return
				}
				if c.fits(round + 1) {
					b.progress.step(g, c, round+1, b.rounds)
					b.measure(ctx, c, round+1)
					b.progress.done(c)
				}
			}
		}
	}
}

// measure does one cell in one round. A child that fails is started again for what
// follows, once; the cell has no result in this round.
func (b *bench) measure(ctx context.Context, c cell, round int) {
	if b.failures[c.system] >= maxFailures {
		return // as reported
	}
	fail := func(err error) {
		if ctx.Err() != nil {
			return // interrupted, which is nobody's failure
		}
		text := fmt.Sprintf("%s, round %d: %v", c.key(), round, err)
		b.report.Failed = append(b.report.Failed, text)
		b.progress.say(text)
		b.failures[c.system]++
		if p := b.processes[c.system]; p != nil {
			p.stop()
			delete(b.processes, c.system)
		}
	}
	t := task{Load: c.load, Time: b.time, Idle: c.idle}
	p, err := b.process(ctx, c)
	if err != nil {
		fail(err)
		return
	}
	o, err := p.do(t, 6*time.Minute+10*b.time)
	if c.idle > 0 {
		p.stop()
	}
	if err != nil {
		fail(err)
		return
	}
	if c.idle > 0 {
		b.report.Idle = append(b.report.Idle, idleResult{c.system, round, c.load.Name, o.Memory})
		return
	}
	o.Result.System, o.Result.Round = c.system, round
	b.report.Results = append(b.report.Results, o.Result)
}

// process is the child for a cell: the system's own, or for idle connections a
// fresh one, whose memory tells nothing of earlier loads.
func (b *bench) process(ctx context.Context, c cell) (*process, error) {
	if c.idle > 0 {
		return start(ctx, c.system)
	}
	if p := b.processes[c.system]; p != nil {
		return p, nil
	}
	p, err := start(ctx, c.system)
	if err == nil {
		b.processes[c.system] = p
	}
	return p, err
}

package main

import (
	"fmt"

	"github.com/duetrpc/duet/bench/load"
)

// step is one line of the table: a load, or idle connections.
type step struct {
	load.Load
	idle int // connections; the load has only a name then
}

// steps is everything there is to measure, in the order of the table, which has
// idle connections at its end.
func steps(cfg config) []step {
	// Idle connections come first: their memory is measured best in a heap in
	// which nothing has happened yet.
	all := []step{{
		Load: load.Load{Name: fmt.Sprintf("%s idle connections", count(float64(cfg.idle)))},
		idle: cfg.idle,
	}}
	calls := func(kind load.Kind, size, inFlight int) {
		all = append(all, step{Load: load.Load{
			Name: fmt.Sprintf("%s %s, %d in flight", kind, bytes(float64(size)), inFlight),
			Kind: kind, Size: size, InFlight: inFlight,
		}})
	}
	for _, inFlight := range []int{1, 16, 256, 4096} {
		calls(load.Typed, 64, inFlight)
	}
	calls(load.Raw, 64, 256)
	calls(load.Typed, 1<<10, 16)
	calls(load.Typed, 1<<10, 256)
	calls(load.Typed, 64<<10, 16)
	calls(load.Raw, 64<<10, 16)
	calls(load.Typed, 1<<20, 4)
	calls(load.Raw, 1<<20, 4)
	for _, senders := range []int{1, 16} {
		for _, l := range []load.Load{
			{Name: "notifications", Kind: load.Notify},
			{Name: "items of a stream", Kind: load.Stream},
		} {
			l.Name = fmt.Sprintf("%s 64 B, %d sender%s", l.Name, senders, plural(senders))
			l.Size, l.InFlight = 64, senders
			all = append(all, step{Load: l})
		}
	}
	// What only changes one thing about 256 calls in flight is to be compared with them.
	like := func(name string, change func(*step)) {
		s := step{Load: load.Load{Name: name, Kind: load.Typed, Size: 64, InFlight: 256}}
		change(&s)
		all = append(all, s)
	}
	like("registry of 10,000 methods, 256 in flight", func(s *step) { s.Methods = 10_000 })
	like("wss, typed 64 B, 256 in flight", func(s *step) { s.TLS = true })
	like("resume, typed 64 B, 256 in flight", func(s *step) { s.Resume = true })
	like("resume, notifications 64 B, 1 sender", func(s *step) { s.Resume, s.Kind, s.InFlight = true, load.Notify, 1 })
	for _, share := range []float64{0.5, 0.8} {
		like(fmt.Sprintf("open loop at %.0f %% of 256 in flight", 100*share), func(s *step) {
			s.Share = share
		})
	}
	like(fmt.Sprintf("one call open during %s others", count(float64(cfg.calls))), func(s *step) {
		s.Calls = cfg.calls
		s.OpenCall = true
	})
	return all
}

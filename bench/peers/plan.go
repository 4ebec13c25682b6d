package main

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems"
)

// group is what is measured interleaved, round by round, since its figures are
// compared with each other.
type group struct {
	title string
	cells []cell
}

// cell is one system under one load.
type cell struct {
	system string
	load   load.Load
	label  string // of its row, where that is more than the system's name

	idle int  // connections to hold, instead of a load
	once bool // in the first round only
}

// key names the cell in results. The rate of an open loop is no part of it.
func (c cell) key() string { return c.system + " " + c.load.Name }

// The names of loads, as -load selects them and verdicts find them.
const (
	typed64  = "typed-64B-%d"
	raw64    = "raw-64B-%d"
	typed1K  = "typed-1KiB-%d"
	raw1K    = "raw-1KiB-%d"
	typed64K = "typed-64KiB-16"
	raw64K   = "raw-64KiB-16"
	typed1M  = "typed-1MiB-4"
	raw1M    = "raw-1MiB-4"
	notify64 = "notify-64B-%d"
	open50   = "open-50"
	open80   = "open-80"
	methods0 = "registry-10"
	methods1 = "registry-10000"
	wss      = "wss-64B-256"
	openCall = "open-call"
	idleLoad = "idle-2000"
	holdLoad = "hold-19000"
)

const (
	byKiB = 1 << 10
	byMiB = 1 << 20
)

// plan is everything that is measured. Slow systems are left out where no ratio and
// no line of a chart needs them.
func plan(short bool) []group {
	var (
		lsp   = []string{systems.LSPInlineName, systems.LSPAsyncName}
		fast  = append([]string{systems.DuetName, systems.GRPCStreamName}, lsp...)
		slow  = []string{systems.EthereumName, systems.ExpName, systems.JRPC2Name, systems.SourcegraphName}
		other = []string{systems.GRPCUnaryName, systems.PostName}
		raw   = []string{systems.CoderName, systems.CoalescedName, systems.GorillaName, systems.TCPName}
		limit = []string{systems.CoderName, systems.CoalescedName}
		duet  = []string{systems.DuetName}
		pair  = append([]string{systems.DuetName}, lsp...) // what is compared in raw calls
	)
	calls, idle, hold := 1_000_000, 2_000, 19_000
	if short {
		calls, idle, hold = 2_000, 20, 50
	}
	small := func(n int) load.Load { return typed(typed64, 64, n) }
	most := func(n int) []cell {
		cells := cellsOf(small(n), "", fast, slow, other)
		cells = append(cells, cellsOf(rawOf(raw64, 64, n), "raw params", pair)...)
		return append(cells, cellsOf(rawOf(raw64, 64, n), "", raw)...)
	}
	chart := func(n int) []cell {
		cells := append(cellsOf(small(n), "", fast), cellsOf(rawOf(raw64, 64, n), "raw params", duet)...)
		return append(cells, cellsOf(rawOf(raw64, 64, n), "", limit)...)
	}
	with := func(l load.Load, name string, change func(*load.Load)) load.Load {
		l.Name = name
		change(&l)
		return l
	}

	at256 := most(256)
	at256 = append(at256, cellsOf(small(4096), "at 4,096", fast)...)
	at256 = append(at256, cellsOf(rawOf(raw64, 64, 4096), "raw params, at 4,096", duet)...)
	at256 = append(at256, cellsOf(rawOf(raw64, 64, 4096), "at 4,096", limit)...)
	at256 = append(at256, cellsOf(with(small(256), methods0, func(l *load.Load) { l.Methods = 10 }), "10 methods", duet)...)
	at256 = append(at256, cellsOf(with(small(256), methods1, func(l *load.Load) { l.Methods = 10_000 }), "10,000 methods", duet)...)
	at256 = append(at256, cellsOf(with(small(256), wss, func(l *load.Load) { l.TLS = true }), "wss", duet)...)

	stays := cellsOf(with(small(256), openCall, func(l *load.Load) { l.Calls, l.OpenCall = calls, true }), "", duet)
	stays[0].once = true

	open := func(name string, share float64) []cell {
		shared := func(l *load.Load) { l.Share = share }
		cells := cellsOf(with(small(256), name, shared), "", pair, []string{systems.GRPCStreamName})
		return append(cells, cellsOf(with(rawOf(raw64, 64, 256), name, shared), "", []string{systems.CoalescedName})...)
	}
	held := cellsOf(load.Load{Name: holdLoad}, "held", duet)
	held[0].idle, held[0].once = hold, true
	memory := cellsOf(load.Load{Name: idleLoad}, "", duet, []string{systems.CoderName})
	for i := range memory {
		memory[i].idle = idle
	}

	return []group{
		{"64 B, 256 in flight", at256},
		{"64 B, 16 in flight", most(16)},
		{"64 B, 1 in flight", most(1)},
		{"64 B, 4 in flight", chart(4)},
		{"64 B, 64 in flight", chart(64)},
		{"64 B, 1,024 in flight", chart(1024)},
		{"1 KiB, 256 in flight", append(cellsOf(typed(typed1K, byKiB, 256), "", fast, slow),
			cellsOf(rawOf(raw1K, byKiB, 256), "", limit)...)},
		{"1 KiB, 16 in flight", append(cellsOf(typed(typed1K, byKiB, 16), "", fast),
			cellsOf(rawOf(raw1K, byKiB, 16), "", limit)...)},
		{"64 KiB, 16 in flight", append(cellsOf(load.Load{Name: typed64K, Kind: load.Typed, Size: 64 * byKiB, InFlight: 16}, "", pair),
			append(cellsOf(load.Load{Name: raw64K, Kind: load.Raw, Size: 64 * byKiB, InFlight: 16}, "raw params", pair[:2]),
				cellsOf(load.Load{Name: raw64K, Kind: load.Raw, Size: 64 * byKiB, InFlight: 16}, "", limit)...)...)},
		{"1 MiB, 4 in flight", append(cellsOf(load.Load{Name: typed1M, Kind: load.Typed, Size: byMiB, InFlight: 4}, "", pair),
			append(cellsOf(load.Load{Name: raw1M, Kind: load.Raw, Size: byMiB, InFlight: 4}, "raw params", pair[:2]),
				cellsOf(load.Load{Name: raw1M, Kind: load.Raw, Size: byMiB, InFlight: 4}, "", limit[1:])...)...)},
		{"64 B, notifications one way, 1 sender", cellsOf(note(1), "", fast, limit)},
		{"64 B, notifications one way, 16 senders", cellsOf(note(16), "", fast, slow, raw)},
		{"64 B, open loop, 50 % of the own maximum", open(open50, 0.5)},
		{"64 B, open loop, 80 % of the own maximum", open(open80, 0.8)},
		{"64 B, 256 in flight, one more call open", stays},
		{"idle connections", append(memory, held...)},
	}
}

func typed(name string, size, n int) load.Load {
	return load.Load{Name: fmt.Sprintf(name, n), Kind: load.Typed, Size: size, InFlight: n}
}

func rawOf(name string, size, n int) load.Load {
	return load.Load{Name: fmt.Sprintf(name, n), Kind: load.Raw, Size: size, InFlight: n}
}

func note(n int) load.Load {
	return load.Load{Name: fmt.Sprintf(notify64, n), Kind: load.Notify, Size: 64, InFlight: n}
}

func cellsOf(l load.Load, label string, lists ...[]string) (cells []cell) {
	for _, names := range lists {
		for _, name := range names {
			cells = append(cells, cell{system: name, load: l, label: label})
		}
	}
	return cells
}

// choose keeps the cells whose system and load match. Nil matches all.
func choose(groups []group, system, load *regexp.Regexp) (chosen []group) {
	for _, g := range groups {
		var cells []cell
		for _, c := range g.cells {
			if (system == nil || system.MatchString(c.system)) && (load == nil || load.MatchString(c.load.Name)) {
				cells = append(cells, c)
			}
		}
		if len(cells) > 0 {
			chosen = append(chosen, group{g.title, cells})
		}
	}
	return chosen
}

// allNames lists the systems and the loads of a plan, each once.
func allNames(groups []group) (systems, loads []string) {
	once := func(list []string, name string) []string {
		if slices.Contains(list, name) {
			return list
		}
		return append(list, name)
	}
	for _, g := range groups {
		for _, c := range g.cells {
			systems, loads = once(systems, c.system), once(loads, c.load.Name)
		}
	}
	return systems, loads
}

// cost is about how long a cell takes in one round.
func (c cell) cost(d time.Duration) time.Duration {
	const around = 60 * time.Millisecond // opening, closing, collecting garbage
	switch {
	case c.idle > 0:
		return 400*time.Millisecond + time.Duration(c.idle)*250*time.Microsecond
	case c.load.Calls > 0:
		return around + time.Duration(c.load.Calls)*5*time.Microsecond
	default:
		return around + min(d, 300*time.Millisecond) + d
	}
}

// fits reports whether the cell is measured in this round, from 1.
func (c cell) fits(round int) bool { return !c.once || round == 1 }

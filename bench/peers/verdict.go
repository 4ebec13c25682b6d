package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems"
)

// verdict is one thing that must be reached: a figure, or a ratio of two.
type verdict struct {
	name   string
	value  term
	of     *term // the denominator; nil: the figure itself is judged
	must   float64
	aim    float64
	atMost bool // less is better
}

// term is a figure of the best of some systems under one load.
type term struct {
	systems []string
	load    string
	pick    func(load.Result) float64
	memory  func(load.Memory) float64 // in place of pick, of idle connections
	least   bool                      // the best is the least
}

// judged is a verdict with what was measured.
type judged struct {
	verdict
	planned bool // by the flags; what is not planned is not judged
	found   bool
	got     float64
}

func (j judged) missed() bool {
	switch {
	case !j.planned:
		return false
	case !j.found:
		return true
	case j.atMost:
		return !(j.got <= j.must)
	default:
		return !(j.got >= j.must)
	}
}

func (j judged) aimed() bool {
	return j.found && (j.atMost && j.got <= j.aim || !j.atMost && j.got >= j.aim)
}

// verdicts is the table of what must be reached.
func verdicts() []verdict {
	var (
		duet    = []string{systems.DuetName}
		lsp     = []string{systems.LSPInlineName, systems.LSPAsyncName} // its better mode
		rest    = []string{systems.EthereumName, systems.ExpName, systems.JRPC2Name, systems.SourcegraphName}
		grpc    = []string{systems.GRPCStreamName}
		coder   = []string{systems.CoderName}
		limit   = []string{systems.CoalescedName}
		rate    = func(who []string, load string) term { return term{systems: who, load: load, pick: perSecond} }
		slowest = func(who []string, load string) term { return term{systems: who, load: load, pick: p99, least: true} }
		at      = fmt.Sprintf
	)
	times := func(name, load string, of term, must, aim float64) verdict {
		return verdict{name: name, value: rate(duet, load), of: &of, must: must, aim: aim}
	}
	tail := func(name, load string, must, aim float64) verdict {
		of := slowest(lsp, load)
		return verdict{name: name, value: slowest(duet, load), of: &of, must: must, aim: aim, atMost: true}
	}
	plain := func(name, load string, pick func(load.Result) float64, must, aim float64) verdict {
		return verdict{name: name, value: term{systems: duet, load: load, pick: pick}, must: must, aim: aim, atMost: true}
	}
	t256, t16, t1 := at(typed64, 256), at(typed64, 16), at(typed64, 1)
	r256, r16, r1 := at(raw64, 256), at(raw64, 16), at(raw64, 1)
	n1, n16 := at(notify64, 1), at(notify64, 16)

	coderP50 := term{systems: coder, load: r1, pick: p50, least: true}
	coderIdle := term{systems: coder, load: idleLoad, memory: memoryOf, least: true}

	return []verdict{
		times("64 B typed, 256 in flight: times go.lsp.dev", t256, rate(lsp, t256), 1.9, 2.6),
		times("64 B typed, 256 in flight: times the best of the rest", t256, rate(rest, t256), 4.5, 6),
		times("64 B typed, 256 in flight: of coalesced raw coder/websocket", t256, rate(limit, r256), 0.48, 0.65),
		times("64 B raw params, 256 in flight: times go.lsp.dev raw", r256, rate(lsp, r256), 2.6, 3.4),
		times("64 B raw params, 256 in flight: of coalesced raw coder/websocket", r256, rate(limit, r256), 0.8, 1.0),
		times("64 B typed, 16 in flight: times go.lsp.dev", t16, rate(lsp, t16), 1.4, 2),
		times("64 B typed, 16 in flight: of raw coder/websocket", t16, rate(coder, r16), 1.0, 1.4),
		times("64 B typed, 1 in flight: times go.lsp.dev", t1, rate(lsp, t1), 1.1, 1.3),
		{name: "64 B typed, 1 in flight: p50, of raw coder/websocket's", value: term{systems: duet, load: t1, pick: p50, least: true},
			of: &coderP50, must: 1.15, aim: 1.05, atMost: true},
		times("1 KiB typed, 256 in flight: times go.lsp.dev", at(typed1K, 256), rate(lsp, at(typed1K, 256)), 1.35, 2),
		times("1 KiB typed, 16 in flight: times go.lsp.dev", at(typed1K, 16), rate(lsp, at(typed1K, 16)), 1.15, 1.6),
		times("64 KiB raw params, 16 in flight: of coalesced raw coder/websocket", raw64K, rate(limit, raw64K), 0.5, 0.8),
		times("64 KiB typed, 16 in flight: times go.lsp.dev", typed64K, rate(lsp, typed64K), 1.3, 2),
		times("1 MiB raw params, 4 in flight: of coalesced raw coder/websocket", raw1M, rate(limit, raw1M), 0.5, 0.8),
		times("1 MiB typed, 4 in flight: times go.lsp.dev", typed1M, rate(lsp, typed1M), 1.3, 2),
		times("notifications, 1 sender: times go.lsp.dev", n1, rate(lsp, n1), 1.3, 2.2),
		times("notifications, 16 senders: times go.lsp.dev", n16, rate(lsp, n16), 1.3, 2.2),
		times("64 B typed, 256 in flight: times the gRPC stream", t256, rate(grpc, t256), 1.0, 1.4),
		times("64 B typed, 16 in flight: times the gRPC stream", t16, rate(grpc, t16), 1.1, 1.6),
		times("64 B typed, 1 in flight: times the gRPC stream", t1, rate(grpc, t1), 1.1, 1.4),
		times("1 KiB typed, 256 in flight: times the gRPC stream", at(typed1K, 256), rate(grpc, at(typed1K, 256)), 0.65, 1.0),
		times("notifications, 1 sender: times the gRPC stream", n1, rate(grpc, n1), 0.8, 1.3),
		times("notifications, 16 senders: times the gRPC stream", n16, rate(grpc, n16), 0.8, 1.3),
		plain("64 B typed, 256 in flight: writes per call", t256, writes, 0.3, 0.15),
		plain("64 B typed, 256 in flight: allocations per call, both ends", t256, allocs, 8, 4),
		tail("p99, 256 in flight, closed loop: of go.lsp.dev's", t256, 0.6, 0.35),
		tail("p99, open loop at 50 % of the own maximum: of go.lsp.dev's", open50, 0.8, 0.5),
		tail("p99, open loop at 80 % of the own maximum: of go.lsp.dev's", open80, 0.8, 0.5),
		{name: "memory of an idle connection: of raw coder/websocket's", value: term{systems: duet, load: idleLoad, memory: memoryOf, least: true},
			of: &coderIdle, must: 1.2, aim: 1.0, atMost: true},
		{name: "idle connections held in one process", value: term{systems: duet, load: holdLoad, memory: held}, must: 9_000, aim: 19_000},
		times("calls/s at 4,096 in flight, of those at 256", at(typed64, 4096), rate(duet, t256), 0.75, 1),
		// The least that could be kept of a call is a pointer, eight bytes. What
		// pools and maps have grown by, once for all calls, is less than one.
		plain("one call open during a million others: bytes of heap grown per call", openCall, grown, 1, 1),
		times("a registry of 10,000 methods, of one of 10", methods1, rate(duet, methods0), 0.95, 1),
		times("wss, of ws, 256 in flight", wss, rate(duet, t256), 0.8, 0.9),
	}
}

// judge measures the verdicts by a report. What the flags of the run, or of this
// look at it, have left out is not judged.
func judge(all []verdict, r *report, groups []group) []judged {
	chosen := make(map[string]bool)
	for _, g := range groups {
		for _, c := range g.cells {
			chosen[c.key()] = true
		}
	}
	planned := make(map[string]bool)
	for _, key := range r.Planned {
		planned[key] = chosen[key]
	}
	var out []judged
	for _, v := range all {
		j := judged{verdict: v, planned: v.value.planned(planned)}
		j.got, j.found = v.value.figure(r)
		if v.of != nil {
			j.planned = j.planned && v.of.planned(planned)
			of, found := v.of.figure(r)
			j.found = j.found && found && of > 0
			if j.found {
				j.got /= of
			}
		}
		out = append(out, j)
	}
	return out
}

// planned reports whether all systems of the term were to be measured.
func (t term) planned(keys map[string]bool) bool {
	return !slices.ContainsFunc(t.systems, func(name string) bool { return !keys[name+" "+t.load] })
}

// figure is the median of the best system. All must have one: the best of some is
// unknown where one is missing.
func (t term) figure(r *report) (best float64, found bool) {
	for i, name := range t.systems {
		var s spread
		if t.memory != nil {
			s, found = r.memory(name+" "+t.load, t.memory)
		} else {
			s, found = r.figure(name+" "+t.load, t.pick)
		}
		if !found {
			return 0, false
		}
		if i == 0 || t.least && s.median < best || !t.least && s.median > best {
			best = s.median
		}
	}
	return best, found
}

// printVerdicts writes a line for each and returns how many were missed.
func printVerdicts(w io.Writer, all []judged) (missed int) {
	planned := slices.DeleteFunc(slices.Clone(all), func(j judged) bool { return !j.planned })
	if len(planned) == 0 {
		fmt.Fprintln(w, "\nnothing is judged: the flags leave out what there is to compare")
		return 0
	}
	fmt.Fprintf(w, "\n%-70s %10s %10s %8s\n", "what must be reached", "measured", "must", "aim")
	for _, j := range planned {
		sign := "≥"
		if j.atMost {
			sign = "≤"
		}
		got, word := "-", "ok"
		if j.found {
			got = decimals(j.got)
		}
		switch {
		case j.missed():
			word = "MISSED"
			missed++
		case j.aimed():
			word = "ok, aim reached"
		}
		fmt.Fprintf(w, "%-70s %10s %2s%8s %8s  %s\n", j.name, got, sign, decimals(j.must), decimals(j.aim), word)
	}
	if left := len(all) - len(planned); left > 0 {
		fmt.Fprintf(w, "%d more are not judged, since the flags leave out what they compare\n", left)
	}
	return missed
}

// decimals writes ratios with two or three places and large figures with none.
func decimals(v float64) string {
	switch {
	case v >= 1000:
		return thousands(v)
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

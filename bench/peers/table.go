package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems"
)

// printTables writes a table for each group that has results.
func printTables(w io.Writer, groups []group, r *report) {
	for _, g := range groups {
		if g.cells[0].idle > 0 {
			printIdle(w, g, r)
			continue
		}
		printed := false
		for _, c := range g.cells {
			rate, ok := r.figure(c.key(), perSecond)
			if !ok {
				continue
			}
			if !printed {
				fmt.Fprintf(w, "\n%-42s %9s %15s %7s %7s %7s %6s %6s %6s %6s\n", g.title,
					"per s", "[min..max]", "p50 µs", "p99", "p99.9", "CPU µs", "writes", "allocs", "duet")
				printed = true
			}
			fmt.Fprintf(w, "%-42s %9s %15s %7s %7s %7s %6s %6s %6s %6s\n", c.row(), thousands(rate.median), between(rate),
				r.cut(c, p50), r.cut(c, p99), r.cut(c, p999), r.cut(c, cpu), r.places(c, writes), r.cut(c, allocs), r.ratio(g, c, rate))
			if c.load.OpenCall {
				bytes, _ := r.figure(c.key(), func(l load.Result) float64 { return float64(l.Grown) })
				made, _ := r.figure(c.key(), func(l load.Result) float64 { return float64(l.Calls) })
				fmt.Fprintf(w, "  the heap grew by %s bytes in %s calls\n", thousands(bytes.median), thousands(made.median))
			}
		}
	}
}

// row names a cell in a table.
func (c cell) row() string {
	if c.label == "" {
		return c.system
	}
	return c.system + ", " + c.label
}

// ratio is duet's rate under this load, or its typed one where it has no raw calls
// in the group, divided by the row's.
func (r *report) ratio(g group, c cell, rate spread) string {
	if c.system == systems.DuetName {
		return ""
	}
	duet, ok := r.figure(systems.DuetName+" "+c.load.Name, perSecond)
	for i := 0; i < len(g.cells) && !ok; i++ {
		if g.cells[i].system == systems.DuetName && g.cells[i].load.InFlight == c.load.InFlight {
			duet, ok = r.figure(g.cells[i].key(), perSecond)
		}
	}
	if !ok || rate.median == 0 || c.load.Share > 0 {
		return ""
	}
	return fmt.Sprintf("x%.2f", duet.median/rate.median)
}

// cut and places are medians as short texts; empty where there is nothing to say.
func (r *report) cut(c cell, pick func(load.Result) float64) string {
	s, ok := r.figure(c.key(), pick)
	switch {
	case !ok || s.median == 0 && c.load.Kind == load.Notify:
		return ""
	case s.median < 9.95:
		return fmt.Sprintf("%.1f", s.median)
	case s.median < 99_999:
		return fmt.Sprintf("%.0f", s.median)
	default:
		return fmt.Sprintf("%.0fk", s.median/1000)
	}
}

func (r *report) places(c cell, pick func(load.Result) float64) string {
	s, ok := r.figure(c.key(), pick)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2f", s.median)
}

func printIdle(w io.Writer, g group, r *report) {
	fmt.Fprintf(w, "\n%-42s %9s %15s %15s\n", g.title, "held", "bytes each", "of the system")
	for _, c := range g.cells {
		n, ok := r.memory(c.key(), held)
		if !ok {
			continue
		}
		bytes, _ := r.memory(c.key(), memoryOf)
		resident, _ := r.memory(c.key(), func(m load.Memory) float64 { return m.RSS })
		fmt.Fprintf(w, "%-42s %9s %15s %15s\n", c.row(), thousands(n.least), thousands(bytes.median), thousands(resident.median))
	}
}

// between is the range of a rate, short.
func between(s spread) string { return "[" + short(s.least) + ".." + short(s.most) + "]" }

func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 99_950:
		return fmt.Sprintf("%.0fk", v/1000)
	case v >= 1000:
		return fmt.Sprintf("%.1fk", v/1000)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// thousands groups the digits.
func thousands(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

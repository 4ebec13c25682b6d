package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/duetrpc/duet/bench/load"
)

const (
	nameWidth   = 42
	figureWidth = 9
)

var columns = []string{"calls/s", "p50", "p99", "p99.9", "CPU", "writes", "allocs"}

// print writes the table, with the medians of all rounds, and below it what has
// no rate. Steps that were not measured are left out.
func (b *bench) print(w io.Writer) error {
	var out strings.Builder
	header := false
	for _, s := range b.steps {
		rounds := b.of(s.Name)
		if len(rounds) == 0 {
			continue
		}
		if !header {
			header = true
			line(&out, "", columns)
		}
		line(&out, s.Name, row(rounds))
	}
	if header {
		out.WriteString("\nCPU, writes (system calls on the sockets) and allocs are of both ends, per call.\n")
	}
	for _, s := range b.steps {
		if rounds := b.of(s.Name); s.OpenCall && len(rounds) > 0 {
			grown := middle(rounds, func(r load.Result) float64 { return float64(r.Grown) })
			fmt.Fprintf(&out, "%s: the heap grew by %s.\n", strings.Replace(s.Name, "one", "One", 1), bytes(grown))
		}
	}
	if len(b.idle) > 0 {
		fmt.Fprintln(&out, idleLine(b.idle))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// of returns the results of all rounds of a load.
func (b *bench) of(name string) []load.Result {
	var rounds []load.Result
	for _, r := range b.results {
		if r.Load.Name == name {
			rounds = append(rounds, r)
		}
	}
	return rounds
}

// row is the cells of one load: the median of each figure by itself.
func row(rounds []load.Result) []string {
	of := func(f func(load.Result) float64) float64 { return middle(rounds, f) }
	cells := []string{
		count(of(func(r load.Result) float64 { return r.PerSecond })),
		micros(of(func(r load.Result) float64 { return r.P50 })),
		micros(of(func(r load.Result) float64 { return r.P99 })),
		micros(of(func(r load.Result) float64 { return r.P999 })),
		micros(of(func(r load.Result) float64 { return r.CPU })),
		fmt.Sprintf("%.3f", of(func(r load.Result) float64 { return r.Writes })),
		fmt.Sprintf("%.1f", of(func(r load.Result) float64 { return r.Allocs })),
	}
	return cells
}

// line counts characters, and not bytes as %9s would.
func line(out *strings.Builder, name string, cells []string) {
	fmt.Fprintf(out, "%-*s", nameWidth, name)
	for _, cell := range cells {
		fmt.Fprintf(out, " %s%s", strings.Repeat(" ", max(0, figureWidth-utf8.RuneCountInString(cell))), cell)
	}
	out.WriteByte('\n')
}

// idleLine says what idle connections cost, or why there were not as many.
func idleLine(rounds []load.Memory) string {
	of := func(f func(load.Memory) float64) float64 {
		var values []float64
		for _, m := range rounds {
			values = append(values, f(m))
		}
		return median(values)
	}
	text := fmt.Sprintf("%s of %s idle connections were held, at %s each",
		count(of(func(m load.Memory) float64 { return float64(m.Held) })), count(float64(rounds[0].Wanted)),
		bytes(of(func(m load.Memory) float64 { return m.Go })))
	if rss := of(func(m load.Memory) float64 { return m.RSS }); rss > 0 {
		text += fmt.Sprintf(" (%s as the system counts)", bytes(rss))
	}
	for _, m := range rounds {
		if m.Reason != "" {
			return text + ": " + m.Reason
		}
	}
	return text + "."
}

// middle is the median of one figure over the rounds.
func middle(rounds []load.Result, f func(load.Result) float64) float64 {
	values := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		values = append(values, f(r))
	}
	return median(values)
}

// count is n without a fraction, in groups of three digits.
func count(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// micros is a time given in microseconds, with three digits; "-" is none.
func micros(us float64) string {
	switch {
	case us <= 0:
		return "-"
	case us < 999.5:
		return digits(us) + " µs"
	case us < 999.5e3:
		return digits(us/1e3) + " ms"
	default:
		return digits(us/1e6) + " s"
	}
}

// bytes is a size with three digits.
func bytes(n float64) string {
	abs := max(n, -n)
	switch {
	case abs < 1<<10:
		return fmt.Sprintf("%.0f B", n)
	case abs < 1<<20:
		return short(n/(1<<10)) + " KiB"
	default:
		return short(n/(1<<20)) + " MiB"
	}
}

// digits is n, at least 0, with three digits.
func digits(n float64) string {
	switch {
	case n < 9.995:
		return fmt.Sprintf("%.2f", n)
	case n < 99.95:
		return fmt.Sprintf("%.1f", n)
	default:
		return fmt.Sprintf("%.0f", n)
	}
}

// short is n with one decimal, and none where it is whole.
func short(n float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}

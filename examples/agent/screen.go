package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	show "github.com/duetrpc/duet/examples/internal/screen"
)

// lane is the width of what one end sends.
const lane = 24

// screen is what a person looks at. Its methods may not be used concurrently.
type screen struct {
	out     io.Writer
	colours bool
	began   time.Time
	said    []string // words of a sentence that is not over
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, colours: show.IsTerminal(out)}
}

// begin draws the first line, when there is a connection.
func (s *screen) begin() {
	s.began = time.Now()
	fmt.Fprintf(s.out, "%7s  %-*s     %-*s  %s\n", "ms", lane, "client", lane, "agent", "as sent")
}

// message draws one message: what it is in the lane of the end it comes from, a
// remark in the other lane, and how its text begins.
func (s *screen) message(way int, what, remark string, text []byte) {
	left, arrow, right, colour := what, "──▶", remark, 36
	if way == toClient {
		left, arrow, right, colour = remark, "◀──", what, 33
	}
	line := fmt.Sprintf("%-*s %s %-*s", lane, show.Clip(left, lane), arrow, lane, show.Clip(right, lane))
	if s.colours {
		line = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, line)
	}
	ms := float64(time.Since(s.began)) / float64(time.Millisecond)
	fmt.Fprintf(s.out, "%7.2f  %s  %s\n", ms, line, show.Clip(string(text), 36))
}

// word shows what the agent says, sentence by sentence.
func (s *screen) word(word string) {
	s.said = append(s.said, word)
	if strings.HasSuffix(word, ".") {
		s.say("")
	}
}

// say draws the sentence so far.
func (s *screen) say(remark string) {
	if len(s.said) == 0 {
		return
	}
	ms := float64(time.Since(s.began)) / float64(time.Millisecond)
	fmt.Fprintf(s.out, "%7.2f  %-*s ◀┄┄ %s%s\n", ms, lane, show.Clip(fmt.Sprintf("hears %d words", len(s.said)), lane), show.Clip(strings.Join(s.said, " "), 90), remark)
	s.said = nil
}

// remark draws what happens to the connection, between the words.
func (s *screen) remark(format string, args ...any) {
	s.say(" …")
	line := fmt.Sprintf(format, args...)
	if s.colours {
		line = fmt.Sprintf("\x1b[31m%s\x1b[0m", line)
	}
	ms := float64(time.Since(s.began)) / float64(time.Millisecond)
	fmt.Fprintf(s.out, "%7.2f  %s\n", ms, line)
}

// summary draws the counts of both ways.
func (s *screen) summary(a, b *traffic) {
	row := func(name string, a, b any) { fmt.Fprintf(s.out, "%-24s %19v %19v\n", name, a, b) }
	fmt.Fprintln(s.out)
	row("", "client ──▶ agent", "client ◀── agent")
	row("calls", a.calls, b.calls)
	row("answered", len(a.took), len(b.took))
	row("  before an earlier call", a.overtook, b.overtook)
	row("notifications", a.notifications, b.notifications)
	row("items of a stream", a.items, b.items)
	row("latency p50", percentile(a.took, 0.50), percentile(b.took, 0.50))
	row("latency p99", percentile(a.took, 0.99), percentile(b.took, 0.99))
}

// stopped draws the last lines of a session that was interrupted.
func (s *screen) stopped(answered, open, words int) {
	fmt.Fprintf(s.out, "\ninterrupted: the call was cancelled after %d words; ", words)
	if open > 0 {
		fmt.Fprintf(s.out, "%d calls were not answered in time\n", open)
		return
	}
	fmt.Fprintf(s.out, "the agent has stopped, and answered all %d calls\n", answered)
}

// verdict draws the last lines. It is an error if something was wrong.
func (s *screen) verdict(compared string, wrong problems) error {
	if len(wrong) == 0 {
		fmt.Fprintf(s.out, "\nmatched: %s\n", compared)
		return nil
	}
	fmt.Fprintf(s.out, "\nNOT MATCHED\n")
	for _, w := range wrong {
		fmt.Fprintf(s.out, "  %s\n", show.Clip(w, 200))
	}
	return fmt.Errorf("%d things did not match", len(wrong))
}

// percentile is the smallest of took that is not less than the share p of them.
func percentile(took []time.Duration, p float64) string {
	if len(took) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(took))
	d := sorted[int(math.Ceil(p*float64(len(sorted))))-1]
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

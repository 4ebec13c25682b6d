package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// screen tells how far the run is: in place on a terminal, else line by line.
type screen struct {
	out      io.Writer
	terminal bool
	total    int // steps
	done     int
	start    time.Time
}

func newScreen(out io.Writer, total int) *screen {
	return &screen{out: out, terminal: isTerminal(out), total: total, start: time.Now()}
}

// next says which step begins.
func (s *screen) next(round, rounds int, name string) {
	text := fmt.Sprintf("%3d of %d  %s", s.done+1, s.total, name)
	if rounds > 1 {
		text = fmt.Sprintf("round %d of %d  %s", round, rounds, text)
	}
	if s.done > 0 {
		// Steps take about the same time each.
		left := time.Since(s.start) / time.Duration(s.done) * time.Duration(s.total-s.done)
		text += fmt.Sprintf("  (about %.0f s left)", max(1, left.Seconds()))
	}
	s.done++
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K%s", text)
	} else {
		fmt.Fprintln(s.out, text)
	}
}

// clear takes the line away.
func (s *screen) clear() {
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// isTerminal reports whether w can redraw a line.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// quietly is how many seconds pass between two lines where they cannot be drawn again.
const quietly = 5

// screen tells how the run goes: in place on a terminal, else line by line.
type screen struct {
	out      io.Writer
	terminal bool
	tally    *tally
	of       time.Duration
	began    time.Time
}

func newScreen(out io.Writer, t *tally, of time.Duration) *screen {
	return &screen{out: out, terminal: isTerminal(out), tally: t, of: of, began: time.Now()}
}

// start draws a line now and then. stop ends that, and takes away what can be drawn again.
func (s *screen) start() (stop func()) {
	every := time.Second
	if !s.terminal {
		every *= quietly
	}
	done := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s.draw()
			}
		}
	})
	return func() {
		close(done)
		drawing.Wait()
		if s.terminal {
			fmt.Fprint(s.out, "\r\x1b[K")
		}
	}
}

func (s *screen) draw() {
	t := s.tally
	gone := time.Since(s.began)
	cuts := t.count()
	line := fmt.Sprintf("%4.0f of %.0f s  cuts %d, %.0f a second  calls %d  callbacks %d  notifications %d  items %d  open %d",
		gone.Seconds(), s.of.Seconds(), cuts, float64(cuts)/gone.Seconds(),
		t.calls.Load(), t.callbacks.Load(), t.notifications.Load(), t.items.Load(), t.open.Load())
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(s.out, line)
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

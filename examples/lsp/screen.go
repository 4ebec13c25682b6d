package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"unicode"
)

// The two ways through the connection.
const (
	toServer = iota
	toEditor
)

// screen is what a person looks at: what the editor says and hears. Its methods may
// be used concurrently.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	colours bool
}

func newScreen(out io.Writer) *screen {
	fmt.Fprintf(out, "──▶ from the editor to the server, ◀── from the server to the editor\n\n")
	return &screen{out: out, colours: isTerminal(out)}
}

// line draws one message, and what is to be said about it.
func (s *screen) line(way int, what, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	arrow, colour := "──▶", 36
	if way == toEditor {
		arrow, colour = "◀──", 33
	}
	what = fmt.Sprintf("%s %-32s", arrow, clip(what))
	if s.colours {
		what = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, what)
	}
	fmt.Fprintf(s.out, "%s  %s\n", what, clip(fmt.Sprintf(format, args...)))
}

// matched draws the last line.
func (s *screen) matched(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\nmatched: %s\n", fmt.Sprintf(format, args...))
}

// clip takes out of a text what could steer the terminal, and cuts it.
func clip(text string) string {
	var clean []rune
	for _, r := range text {
		if len(clean) == 100 {
			return string(clean) + "…"
		}
		if !unicode.IsPrint(r) {
			r = '·'
		}
		clean = append(clean, r)
	}
	return string(clean)
}

// isTerminal reports whether w may be given colours.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

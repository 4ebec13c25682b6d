// Package screen draws what the examples show: one line for each message, readable in
// a terminal and in a file.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
)

// Way is one of the two ways through a connection, as the end sees it that shows.
type Way int

// The ways.
const (
	Out Way = iota
	In
)

// Screen is what a person looks at. Its methods may be used concurrently.
type Screen struct {
	mu      sync.Mutex
	out     io.Writer
	colours bool
}

// New returns a screen that begins with a heading.
func New(out io.Writer, heading string) *Screen {
	fmt.Fprintf(out, "%s\n\n", heading)
	return &Screen{out: out, colours: IsTerminal(out)}
}

// Line draws one message, and what is to be said about it.
func (s *Screen) Line(way Way, what, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	arrow, colour := "──▶", 36
	if way == In {
		arrow, colour = "◀──", 33
	}
	what = fmt.Sprintf("%s %-32s", arrow, Clip(what, 100))
	if s.colours {
		what = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, what)
	}
	fmt.Fprintf(s.out, "%s  %s\n", what, Clip(fmt.Sprintf(format, args...), 100))
}

// Matched draws the last line.
func (s *Screen) Matched(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\nmatched: %s\n", fmt.Sprintf(format, args...))
}

// Clip cuts text to a width, and takes out of it what could steer the terminal: what
// comes from another end may hold anything.
func Clip(text string, width int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > width {
			return string([]rune(b.String())[:width-1]) + "…"
		}
		if !unicode.IsPrint(r) {
			r = '·'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// IsTerminal reports whether w may be given colours.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

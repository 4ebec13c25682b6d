package screen

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	var out bytes.Buffer
	s := New(&out, "two ways")
	s.Line(Out, "a", "%d", 1)
	s.Line(In, "b", "%s", "\x1b[31m\u009b")
	s.Matched("all of %d", 2)
	want := "two ways\n\n──▶ a" + strings.Repeat(" ", 31) + "  1\n◀── b" + strings.Repeat(" ", 31) + "  ·[31m·\n\nmatched: all of 2\n"
	if out.String() != want {
		t.Errorf("drew %q, want %q", out.String(), want)
	}
	out.Reset()
	s.colours = true
	s.Line(In, "a", "%s", strings.Repeat("x", 200))
	if text := out.String(); !strings.HasPrefix(text, "\x1b[33m◀── a") || !strings.HasSuffix(text, "\x1b[0m  "+strings.Repeat("x", 99)+"…\n") {
		t.Errorf("drew %q", text)
	}
}

func TestIsTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if IsTerminal(file) || IsTerminal(io.Discard) {
		t.Error("a file is a terminal")
	}
}

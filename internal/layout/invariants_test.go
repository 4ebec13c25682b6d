package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInvariants: each invariant at the top of peer/conn.go names the tests that
// hold it, and those exist. A name that ends with "..." stands for a group.
func TestInvariants(t *testing.T) {
	conn, err := os.ReadFile("../../peer/conn.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(conn), "// The invariants of a connection")
	comment, _, _ := strings.Cut(rest, "\n\n")
	files, err := filepath.Glob("../../peer/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	invariants := regexp.MustCompile(`(?m)^//  (\d+)\. `).Split(comment, -1)[1:]
	if len(invariants) != 15 {
		t.Errorf("%d invariants, want 15", len(invariants))
	}
	for i, text := range invariants {
		names := regexp.MustCompile(`(Test|Fuzz)\w+(\.\.\.)?`).FindAllString(text, -1)
		if len(names) == 0 {
			t.Errorf("invariant %d names no test", i+1)
		}
		for _, name := range names {
			want := "func " + strings.TrimSuffix(name, "...")
			if !strings.HasSuffix(name, "...") {
				want += "("
			}
			if !strings.Contains(tests.String(), want) {
				t.Errorf("invariant %d names %s, which is no test of package peer", i+1, name)
			}
		}
	}
}

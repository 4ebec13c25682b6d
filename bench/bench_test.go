package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/duetrpc/duet/bench/load"
)

// TestMain lets the test program be the child process of the idle load.
func TestMain(m *testing.M) {
	load.Child()
	os.Exit(m.Run())
}

// TestRun measures a little of each kind of step, and reads what was written.
func TestRun(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bench.json")
	var stdout, stderr strings.Builder
	args := []string{
		"-time", "2ms", "-rounds", "2", "-calls", "300", "-idle", "20", "-json", name,
		"-load", "^typed 64 B, 1 |^notif.* 1 |^open|^one|idle",
	}
	if got := run(t.Context(), args, &stdout, &stderr); got != 0 {
		t.Fatalf("run() = %d, want 0; stderr:\n%s", got, stderr.String())
	}
	const steps = 6
	for _, want := range []string{"open loop at 50 % of 256 in flight", "the heap grew by", "20 of 20 idle connections were held", " 2 rounds"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("run() printed\n%s\nwant %q in it", stdout.String(), want)
		}
	}
	for text := range strings.Lines(stdout.String()) {
		if width := utf8.RuneCountInString(strings.TrimSuffix(text, "\n")); width > 120 {
			t.Errorf("run() printed a line of %d columns, want at most 120: %s", width, text)
		}
	}
	if got := strings.Count(stderr.String(), "\n"); got != 2*steps || strings.Contains(stderr.String(), "\r") {
		t.Errorf("run() told of %d steps, want %d, a line each:\n%s", got, 2*steps, stderr.String())
	}

	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got content
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 2*(steps-1) || len(got.Idle) != 2 {
		t.Errorf("the file has %d results and %d of idle connections, want %d and 2", len(got.Results), len(got.Idle), 2*(steps-1))
	}
	for _, r := range got.Results {
		if r.System != "duet" || r.Round < 1 || r.Round > 2 || r.Calls == 0 || r.PerSecond <= 0 {
			t.Errorf("the file has %+v, want a system, a round, calls and a rate", r)
		}
		if strings.HasPrefix(r.Load.Name, "open loop") != (r.Load.Rate > 0) {
			t.Errorf("the file has %q with a rate of %v", r.Load.Name, r.Load.Rate)
		}
	}
	if got.Go == "" || got.GOMAXPROCS == 0 || got.Date.IsZero() || len(got.Command) != len(args)+3 {
		t.Errorf("the file has %q, %d, %v, %q; want the Go version, GOMAXPROCS, the date and the command", got.Go, got.GOMAXPROCS, got.Date, got.Command)
	}
}

func TestRunFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown", []string{"-nonsense"}, "nonsense"},
		{"argument", []string{"loads"}, `"loads" is not a flag`},
		{"no time", []string{"-time", "0s"}, "-time 0s"},
		{"bad time", []string{"-time", "soon"}, "time"},
		{"no rounds", []string{"-rounds", "0"}, "-rounds 0"},
		{"no calls", []string{"-calls", "-1"}, "-calls -1"},
		{"no connections", []string{"-idle", "0"}, "-idle 0"},
		{"bad pattern", []string{"-load", "("}, "-load: error parsing regexp"},
		{"no such load", []string{"-load", "grpc"}, "raw 64 B, 256 in flight"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if got := run(t.Context(), c.args, &stdout, &stderr); got != 2 || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("run(%q) = %d, stderr %q; want 2 and %q", c.args, got, stderr.String(), c.want)
			}
			if stdout.Len() > 0 {
				t.Errorf("run(%q) printed %q, want nothing", c.args, stdout.String())
			}
		})
	}
}

func TestRunHelp(t *testing.T) {
	var stdout, stderr strings.Builder
	if got := run(t.Context(), []string{"-h"}, &stdout, &stderr); got != 0 || !strings.Contains(stderr.String(), "-cpuprofile") {
		t.Errorf("run(-h) = %d, stderr %q; want 0 and the flags", got, stderr.String())
	}
}

// TestRunFails shows that what cannot be written is found before anything is
// measured.
func TestRunFails(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "file")
	for _, name := range []string{"-json", "-cpuprofile"} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if got := run(t.Context(), []string{name, missing}, &stdout, &stderr); got != 1 || !strings.Contains(stderr.String(), name+": ") {
				t.Errorf("run(%s) = %d, stderr %q; want 1 and the flag", name, got, stderr.String())
			}
			if stdout.Len() > 0 {
				t.Errorf("run(%s) printed %q, want nothing", name, stdout.String())
			}
		})
	}
}

// TestRunInterrupted ends a run that would take long, and leaves no file behind.
func TestRunInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout strings.Builder
	stderr := writer(func(p []byte) (int, error) {
		if strings.Contains(string(p), "2 of 2") {
			cancel()
		}
		return len(p), nil
	})
	args := []string{"-time", "2ms", "-calls", "100000000", "-load", "^typed 64 B, 1 |^one", "-json", filepath.Join(dir, "bench.json")}
	if got := run(ctx, args, &stdout, stderr); got != 1 {
		t.Errorf("run() = %d, want 1", got)
	}
	if !strings.Contains(stdout.String(), "typed 64 B, 1 in flight") {
		t.Errorf("run() printed %q, want what was measured before", stdout.String())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("run() left %v, %v; want no file", entries, err)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestReportThroughLink writes to what a link stands for, over something longer.
func TestReportThroughLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, make([]byte, 1<<20), 0o644), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if got := run(t.Context(), []string{"-time", "2ms", "-load", "^typed 64 B, 1 ", "-json", link}, &stdout, &stderr); got != 0 {
		t.Fatalf("run() = %d, %s", got, stderr.String())
	}
	text, err := os.ReadFile(target)
	if err != nil || !json.Valid(text) {
		t.Errorf("the target holds %d bytes that are no JSON, %v", len(text), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is none any more: %v, %v", info, err)
	}
}

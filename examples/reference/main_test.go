package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/duetrpc/duet/peer/peertest/wire"
)

// startReference runs the program and returns the address it prints.
func startReference(t *testing.T, args ...string) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	exit := make(chan error, 1)
	go func() {
		exit <- run(ctx, append([]string{"-listen", "127.0.0.1:0", "-drain", "5s"}, args...), w, io.Discard)
		w.Close()
	}()
	t.Cleanup(func() {
		stop()
		if err := <-exit; err != nil {
			t.Errorf("run(%q) = %v after an interrupt, want nil", args, err)
		}
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("run(%q) printed %q: %v", args, line, err)
	}
	go io.Copy(io.Discard, r)
	url, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "reference: ")
	if !ok {
		t.Fatalf("first line = %q, want \"reference: ws://...\"", line)
	}
	return url
}

// TestWireCases runs every wire case against the reference server, over a real
// WebSocket.
func TestWireCases(t *testing.T) {
	cases, err := wire.Cases()
	if err != nil {
		t.Fatal(err)
	}
	runner := &wire.Runner{
		URL:    startReference(t),
		Offers: []string{"subtract", "sum", "get_data", "numeric-ids", "ordered-notifications"},
	}
	outcomes := runner.RunAll(t.Context(), cases)
	for i, out := range outcomes {
		t.Run(cases[i].ID, func(t *testing.T) {
			switch {
			case out.Skipped:
				t.Errorf("skipped, though all is offered")
			case !out.Pass:
				t.Errorf("%s\n%s", cases[i].Note, out.Problem)
			case out.Alternative > 0:
				t.Logf("alternative %d: %s", out.Alternative, out.Why)
			}
		})
	}
}

package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestEndToEnd(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-duration 2s -clients 4 -cuts 10", `^cuts \d+ calls [1-9]\d* callbacks [1-9]\d* notifications [1-9]\d* items [1-9]\d* lost 0 doubled 0 reordered 0 hung 0 leaked 0\n$`},
		{"-duration 2s -clients 4 -cuts 10 -resume=false", `^cuts \d+ calls .* doubled 0 reordered \d+ hung 0 leaked 0\nwithout resume: .* untyped 0; .*\n$`},
	} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), strings.Fields(test.args), &stdout, &stderr)
		if status != 0 || !regexp.MustCompile(test.want).Match(stdout.Bytes()) {
			t.Errorf("%s: exit %d, %s%s", test.args, status, &stdout, &stderr)
		}
	}
}

// An interrupt ends the faults, and everything comes to its end as it would have.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var stdout, stderr bytes.Buffer
	began := time.Now()
	status := run(ctx, []string{"-duration", "1h", "-clients", "2"}, &stdout, &stderr)
	if status != 0 || time.Since(began) > bound || !strings.Contains(stdout.String(), "lost 0 ") {
		t.Errorf("exit %d after %v, %s%s", status, time.Since(began), &stdout, &stderr)
	}
}

func TestTooFewCuts(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"-duration", "100ms", "-clients", "1", "-cuts", "100000"}, &stdout, &stderr)
	if status != 1 || !strings.Contains(stderr.String(), "-cuts") {
		t.Errorf("exit %d, %s", status, &stderr)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{"-duration 0s", "-clients 0", "-cuts -1", "more", "-seed x"} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), &stdout, &stderr); status != 2 || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %s", args, status, &stdout)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, &stdout, &stderr); status != 0 || !strings.Contains(stderr.String(), "-seed number") {
		t.Errorf("-h: exit %d, %s", status, &stderr)
	}
}

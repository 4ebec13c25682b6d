// Package exampletest helps the tests of programs that are run in the process of the
// test.
package exampletest

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Output is a stdout that does something, once, when a text comes by. The zero value
// keeps what is written. It may be used concurrently.
type Output struct {
	On string
	Do func()

	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Do != nil && bytes.Contains(p, []byte(o.On)) {
		o.Do()
		o.Do = nil
	}
	return o.text.Write(p)
}

// String is what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// NoGoroutines fails the test where goroutines of this module or of net/http are left.
// It waits for the last instructions of those that are ending.
func NoGoroutines(t *testing.T) {
	t.Helper()
	ours := func(stack string) bool {
		return !strings.Contains(stack, "testing.tRunner") &&
			(strings.Contains(stack, "duetrpc/duet") || strings.Contains(stack, "net/http"))
	}
	buf := make([]byte, 1<<20)
	for began := time.Now(); ; runtime.Gosched() {
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		left := slices.DeleteFunc(stacks, func(s string) bool { return !ours(s) })
		if len(left) == 0 {
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
	}
}

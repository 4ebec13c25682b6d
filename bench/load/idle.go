package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Memory is what connections on which nothing happens cost the end that accepted
// them.
type Memory struct {
	Wanted int `json:"wanted"`
	Held   int `json:"held"` // accepted, and alive at the end

	// Go is the heap and the stacks in use, RSS what the system counts, in bytes
	// for each connection held. RSS is 0 where the system does not tell.
	Go  float64 `json:"goBytesPerConnection"`
	RSS float64 `json:"rssBytesPerConnection"`

	Reason string `json:"reason,omitempty"` // why no more were held
}

// Idle lets a child process open n WebSocket connections to h, and measures what
// this process spends on them: after, less before, each after two collections of
// garbage. Fewer than n is no error: Reason tells what kept it from more. Each end
// needs n descriptors.
//
// The child is this program, started again: its main must begin with Child.
func Idle(ctx context.Context, n int, h http.Handler) (Memory, error) {
	m := Memory{Wanted: n}
	if n < 1 {
		return m, fmt.Errorf("load: idle: %d connections are none", n)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return m, fmt.Errorf("load: idle: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // returns when the server is closed
	defer server.Close()

	before := inUse()
	child, err := startChild(ctx, listener.Addr().String(), n)
	if err != nil {
		return m, err
	}
	defer child.stop()
	opened, err := child.opened()
	if err != nil {
		return m, err
	}
	after := inUse()
	// Only now: the child ends with this.
	if m.Held, err = child.alive(); err != nil {
		return m, err
	}
	switch {
	case opened.Reason != "":
		m.Reason = opened.Reason
	case m.Held < n:
		m.Reason = "the other end closed them"
	}
	if m.Held == 0 {
		return m, fmt.Errorf("load: idle: no connection was held: %s", m.Reason)
	}
	m.Go = max(0, (after.memory-before.memory)/float64(opened.Count))
	m.RSS = max(0, (after.resident-before.resident)/float64(opened.Count))
	return m, nil
}

// footprint is what this process uses, in bytes.
type footprint struct{ memory, resident float64 }

// inUse collects twice: what pools keep takes two collections to go.
func inUse() footprint {
	debug.FreeOSMemory() // collects, too; without it RSS would hide what fits into freed pages
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	resident, err := rss()
	if err != nil {
		resident = 0 // only Linux has it there
	}
	return footprint{float64(stats.HeapInuse + stats.StackInuse), resident}
}

// rss is the resident set of this process in bytes, as Linux tells it.
func rss() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		value, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		return kib * 1024, err
	}
	return 0, errors.New("load: /proc/self/status has no VmRSS")
}

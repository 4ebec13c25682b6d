package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duetrpc/duet/examples/internal/exampletest"
	"github.com/duetrpc/duet/peer"
)

// folder makes a folder of files: their paths and sizes.
func folder(t *testing.T, sizes map[string]int) string {
	t.Helper()
	dir := t.TempDir()
	for name, size := range sizes {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Repeat([]byte{byte(size)}, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// program runs the program, and makes sure that nothing of it is left.
func program(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	defer exampletest.NoGoroutines(t)
	var out, log exampletest.Output
	status = run(t.Context(), args, &out, &log)
	return status, out.String(), log.String()
}

// counts reads a row of the summary.
func counts(t *testing.T, stdout, row string) (toAgent, toClient int) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ *` + row + ` +(\d+) +(\d+)$`).FindStringSubmatch(stdout)
	if m == nil {
		t.Fatalf("no row %q in:\n%s", row, stdout)
	}
	toAgent, _ = strconv.Atoi(m[1])
	toClient, _ = strconv.Atoi(m[2])
	return toAgent, toClient
}

func TestSession(t *testing.T) {
	many := map[string]int{}
	for i := range maxEntries + 20 {
		many[fmt.Sprintf("f%04d", i)] = 100 + i
		many[fmt.Sprintf("folder%02d/deep/f%04d", i%20, i)] = 10
	}
	tests := map[string]struct {
		files   map[string]int
		args    []string
		calls   int // of the agent
		matched string
	}{
		"a few files": {
			files:   map[string]int{"a": 10, "empty": 0, "\x1b[31mred": 30, "below/b": 20, ".git/config": 5, "big": 100 << 10},
			calls:   1 + 1 + 2 + 5,
			matched: "2 reports, 5 files by their SHA-256 (1 cut at 64 KiB), 8 steps",
		},
		"a file as large as the cap": {
			files:   map[string]int{"cap": readCap},
			calls:   1 + 1 + 1 + 1,
			matched: "2 reports, 1 files by their SHA-256 (0 cut at 64 KiB), 4 steps",
		},
		"empty folder": {
			calls:   1 + 1 + 1,
			matched: "2 reports, 0 files by their SHA-256 (0 cut at 64 KiB), 3 steps",
		},
		"many files": {
			files:   many,
			calls:   1 + 1 + 1 + maxFolders + 6,
			matched: "2 reports, 6 files by their SHA-256 (0 cut at 64 KiB), 9 steps",
		},
		"many to read": {
			files:   many,
			args:    []string{"-files", "100"},
			calls:   1 + 1 + 1 + maxFolders + 100,
			matched: "2 reports, 100 files by their SHA-256 (0 cut at 64 KiB), 103 steps",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, tt.files)
			status, stdout, stderr := program(t, append(tt.args, "-dir", dir)...)
			if status != 0 || !strings.Contains(stdout, "\nmatched: "+tt.matched) {
				t.Fatalf("run() = %d, want 0 and %q\n%s%s", status, tt.matched, stdout, stderr)
			}
			if a, b := counts(t, stdout, "calls"); a != 2 || b != tt.calls {
				t.Errorf("calls = %d and %d, want 2 and %d", a, b, tt.calls)
			}
			if a, b := counts(t, stdout, "answered"); a != 2 || b != tt.calls {
				t.Errorf("answered = %d and %d, want 2 and %d", a, b, tt.calls)
			}
			if a, b := counts(t, stdout, "before an earlier call"); a != 1 || b < 1 {
				t.Errorf("answered before an earlier call = %d and %d, want 1 and some", a, b)
			}
			if _, b := counts(t, stdout, "notifications"); !strings.Contains(tt.matched, fmt.Sprintf(" %d steps", b)) {
				t.Errorf("%d notifications of the agent, want as in %q", b, tt.matched)
			}
			if a, b := counts(t, stdout, "items of a stream"); a != 0 || b < 10 || !strings.Contains(stdout, fmt.Sprintf(" in order, %d words\n", b)) {
				t.Errorf("items = %d and %d, want none and every word", a, b)
			}
			if n := strings.Count(stdout, " ◀┄┄ "); n < 2 || !strings.Contains(stdout, "◀┄┄ I have looked at ") {
				t.Errorf("%d sentences in:\n%s", n, stdout)
			}
			if !regexp.MustCompile(`latency p50( +\d+\.\d\d ms){2}\nlatency p99( +\d+\.\d\d ms){2}\n`).MatchString(stdout) {
				t.Errorf("no latencies in:\n%s", stdout)
			}
			if strings.ContainsRune(stdout+stderr, '\x1b') {
				t.Errorf("colours, and this is no terminal:\n%q", stdout)
			}
		})
	}
}

// tampered is a caller whose answers are changed on their way to the agent.
type tampered struct {
	peer.Caller
	call func(c peer.Caller, method string, call func(peer.Caller) error, result any) error
}

func (c tampered) Call(ctx context.Context, method string, params, result any, opts ...peer.CallOption) error {
	call := func(to peer.Caller) error { return to.Call(ctx, method, params, result, opts...) }
	if c.call == nil {
		return call(c.Caller)
	}
	return c.call(c.Caller, method, call, result)
}

func TestMismatch(t *testing.T) {
	content := func(change func(*Content)) tampered {
		return tampered{call: func(c peer.Caller, method string, call func(peer.Caller) error, result any) error {
			err := call(c)
			if content, ok := result.(*Content); ok && err == nil {
				change(content)
			}
			return err
		}}
	}
	report := func(change func(*Report)) func(Report) Report {
		return func(r Report) Report { change(&r); return r }
	}
	tests := map[string]struct {
		caller tampered
		report func(Report) Report
		want   string
	}{
		"a byte of a file": {
			caller: content(func(c *Content) { c.Data[0] ^= 1 }),
			want:   "run 1: a: reported 10 bytes, sha256 ",
		},
		"the end of a file": {
			caller: content(func(c *Content) { c.Data = c.Data[1:] }),
			want:   "run 1: a: reported 9 bytes, sha256 ",
		},
		"an answer to another question": {
			caller: content(func(c *Content) { c.Path = "b" }),
			want:   `asked for "a", answered with "b"`,
		},
		"a listing without a file": {
			caller: tampered{call: func(c peer.Caller, method string, call func(peer.Caller) error, result any) error {
				err := call(c)
				if listing, ok := result.(*Listing); ok {
					listing.Entries = listing.Entries[1:]
				}
				return err
			}},
			want: "run 2: files listed: reported 0, was 1",
		},
		"a step made up": {
			report: report(func(r *Report) { r.Steps++ }),
			want:   "run 2: progress steps: reported 2, was 1",
		},
		"a word made up": {
			report: report(func(r *Report) { r.Words++ }),
			want:   "run 2: words: reported 1, was 0",
		},
		"other words": {
			report: report(func(r *Report) { r.Said = "x" }),
			want:   "run 2: SHA-256 of the words: reported x, was ",
		},
		"a file left out": {
			report: report(func(r *Report) { r.Read = nil }),
			want:   "run 1: files read: reported 0, was 1",
		},
		"a file made up": {
			report: report(func(r *Report) { r.Read = append(r.Read, Digest{Path: "c", Bytes: 3}) }),
			want:   "run 1: c: reported 3 bytes, sha256 , was 0 bytes",
		},
		"bytes made up": {
			report: report(func(r *Report) { r.Bytes++ }),
			want:   "run 2: bytes listed: reported 11, was 10",
		},
		"a report on another run": {
			report: report(func(r *Report) { r.Run = 7 }),
			want:   "run 1: number: reported 7, was 1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			opts := &peer.Options{Handler: newAgent(slog.New(slog.DiscardHandler))}
			if tt.report != nil {
				opts.Handler = peer.Chain(opts.Handler, func(next peer.Handler) peer.Handler {
					return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
						result, err := next.ServeRPC(ctx, req)
						if r, ok := result.(Report); ok && err == nil {
							result = tt.report(r)
						}
						return result, err
					})
				})
			}
			opts.Outgoing = []func(peer.Caller) peer.Caller{func(c peer.Caller) peer.Caller {
				wrapped := tt.caller
				wrapped.Caller = c
				return wrapped
			}}
			agent := peer.NewServer(opts)
			web := httptest.NewServer(agent)
			dir := folder(t, map[string]int{"a": 10})
			var out, log exampletest.Output
			status := run(t.Context(), []string{"-dir", dir, "-connect", "ws" + strings.TrimPrefix(web.URL, "http")}, &out, &log)
			for _, c := range agent.Conns() {
				select {
				case <-c.Done():
				case <-time.After(drainTime):
					t.Error("the client has ended, and its connection has not")
				}
			}
			web.Close()
			if err := agent.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown() = %v", err)
			}
			exampletest.NoGoroutines(t)
			if stdout := out.String(); status != 1 || !strings.Contains(stdout, "NOT MATCHED") || !strings.Contains(stdout, tt.want) {
				t.Errorf("run() = %d, want 1 and %q\n%s", status, tt.want, stdout)
			}
			if !strings.Contains(log.String(), "did not match") {
				t.Errorf("the log does not say why:\n%s", log.String())
			}
		})
	}
}

// toolsFor connects to tools on dir, with run 1 open.
func toolsFor(t *testing.T, dir string, allowed int) *peer.Conn {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	tools := newTools(root, 2)
	tools.allowed = allowed
	tools.open[1] = newServed(1)
	a, b := peer.Pipe()
	client := peer.New(a, &peer.Options{Handler: tools.methods()})
	agent := peer.New(b, &peer.Options{Handler: newAgent(slog.New(slog.DiscardHandler))})
	t.Cleanup(func() {
		_ = agent.Close()
		<-agent.Done()
		<-client.Done()
		_ = root.Close()
	})
	return agent
}

func TestToolsRefuse(t *testing.T) {
	parent := folder(t, map[string]int{"x": 10, "dir/a": 10, "dir/below/b": 10})
	dir := filepath.Join(parent, "dir")
	if err := os.Symlink("../x", filepath.Join(dir, "out")); err != nil {
		t.Skip(err)
	}
	absolute := filepath.Join(parent, "x")
	read, list := string(fsRead), string(fsList)
	tests := map[string]struct {
		method string
		path   string
		run    int
		want   peer.Code
	}{
		"read above the folder":           {read, "../x", 1, codeOutside},
		"read above by a detour":          {read, "below/../../x", 1, codeOutside},
		"read an absolute path":           {read, absolute, 1, codeOutside},
		"read no path":                    {read, "", 1, codeOutside},
		"read through a link":             {read, "out", 1, codeUnreadable},
		"read what is not there":          {read, "c", 1, codeUnreadable},
		"read a folder":                   {read, "below", 1, codeUnreadable},
		"read for a run that is not open": {read, "a", 9, peer.InvalidParams},
		"list above the folder":           {list, "..", 1, codeOutside},
		"list above by a detour":          {list, "below/../..", 1, codeOutside},
		"list through a link":             {list, "out", 1, codeUnreadable},
		"list what is not there":          {list, "c", 1, codeUnreadable},
		"list a file":                     {list, "a", 1, codeUnreadable},
		"list for a run that is not open": {list, ".", 9, peer.InvalidParams},
		"a tool there is not":             {"fs.write", "a", 1, peer.MethodNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			agent := toolsFor(t, dir, 1)
			err := agent.Call(t.Context(), tt.method, Place{Path: tt.path, Run: tt.run}, nil)
			var e *peer.Error
			if !errors.As(err, &e) || e.Code != tt.want {
				t.Fatalf("Call(%s, %q) = %v, want code %d", tt.method, tt.path, err, tt.want)
			}
			if strings.Contains(e.Message, parent) && tt.path != absolute {
				t.Errorf("Call(%s, %q) = %v, which tells where the folder is", tt.method, tt.path, err)
			}
		})
	}
}

// Steps of progress that do not follow each other are noticed.
func TestProgressOrder(t *testing.T) {
	for name, steps := range map[string][]float64{"lost": {1, 3}, "twice": {1, 1}, "backwards": {2, 1}} {
		tools := newTools(nil, 1)
		tools.open[1] = newServed(1)
		for _, step := range steps {
			tools.progress(1, peer.Progress{Done: step})
		}
		if _, wrong := tools.found(); len(wrong) == 0 || !strings.Contains(wrong[0], "of progress came after") {
			t.Errorf("%s: %q", name, wrong)
		}
	}
	tools := newTools(nil, 1)
	tools.progress(7, peer.Progress{Done: 1})
	if _, wrong := tools.found(); len(wrong) != 1 || !strings.Contains(wrong[0], "run 7 is not open") {
		t.Errorf("for no run: %q", wrong)
	}
}

func TestReadIsAllowed(t *testing.T) {
	agent := toolsFor(t, folder(t, map[string]int{"a": 10}), 1)
	at := Place{Path: "a", Run: 1}
	content, err := fsRead.Call(t.Context(), agent, at)
	if err != nil || len(content.Data) != 10 || content.Path != "a" || content.Cut {
		t.Fatalf("Call(fs.read) = %v, %v, want 10 bytes of a", content, err)
	}
	if _, err := fsRead.Call(t.Context(), agent, at); refused(err) != codeNotAllowed {
		t.Errorf("the second Call(fs.read) = %v, want code %d", err, codeNotAllowed)
	}
}

func TestUserIsAskedOnce(t *testing.T) {
	agent := toolsFor(t, t.TempDir(), 0)
	for i, want := range []int{2, 0, 0} {
		permission, err := userAllow.Call(t.Context(), agent, Question{Text: "?", Run: 1})
		if err != nil || permission.Files != want {
			t.Errorf("Call(user.allow) the %d. time = %v, %v, want %d files", i+1, permission, err, want)
		}
	}
}

func TestReadIsCut(t *testing.T) {
	for size, cut := range map[int]bool{readCap - 1: false, readCap: false, readCap + 1: true, 10 * readCap: true} {
		agent := toolsFor(t, folder(t, map[string]int{"a": size}), 1)
		content, err := fsRead.Call(t.Context(), agent, Place{Path: "a", Run: 1})
		if err != nil || len(content.Data) != min(size, readCap) || content.Cut != cut {
			t.Errorf("Call(fs.read) of %d bytes = %d bytes, cut %v, %v, want cut %v", size, len(content.Data), content.Cut, err, cut)
		}
	}
}

func TestListIsCut(t *testing.T) {
	for n, more := range map[int]bool{maxEntries: false, maxEntries + 1: true} {
		files := map[string]int{}
		for i := range n {
			files[strconv.Itoa(i)] = 0
		}
		agent := toolsFor(t, folder(t, files), 0)
		listing, err := fsList.Call(t.Context(), agent, Place{Path: ".", Run: 1})
		if err != nil || len(listing.Entries) != maxEntries || listing.More != more {
			t.Errorf("Call(fs.list) of %d files = %d entries, more %v, %v, want more %v", n, len(listing.Entries), listing.More, err, more)
		}
	}
}

// What the client's own tool answers comes back to the client as it was, through
// the agent.
func TestAgentForwards(t *testing.T) {
	var tools peer.Registry
	userAllow.Handle(&tools, func(context.Context, Question) (Permission, error) {
		return Permission{}, &peer.Error{Code: codeNotAllowed, Message: "no", Data: []byte(`{"why": 1.0}`)}
	})
	a, b := peer.Pipe()
	agent := peer.New(a, &peer.Options{Handler: newAgent(slog.New(slog.DiscardHandler))})
	client := peer.New(b, &peer.Options{Handler: &tools})
	_, err := agentRun.Call(t.Context(), client, Task{Goal: goalRead, Run: 1}).Result()
	var e *peer.Error
	if !errors.As(err, &e) || e.Code != codeNotAllowed || e.Message != "no" || string(e.Data) != `{"why": 1.0}` {
		t.Errorf("Call(agent.run) = %v, want the error of the tool", err)
	}
	if _, err := agentRun.Call(t.Context(), client, Task{Goal: "sing", Run: 1}).Result(); !errors.Is(err, &peer.Error{Code: peer.InvalidParams}) {
		t.Errorf("Call(agent.run) with another goal = %v, want code %d", err, peer.InvalidParams)
	}
	_ = client.Close()
	<-client.Done()
	<-agent.Done()
}

// agentHalf runs the program with -listen until stop is called, which returns
// its exit status.
func agentHalf(t *testing.T) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"-listen", "127.0.0.1:0"}, w, io.Discard)
		w.Close()
	}()
	if _, err := fmt.Fscanln(r, &url); err != nil {
		t.Fatalf("the first line of stdout: %v", err)
	}
	return url, sync.OnceValue(func() int {
		cancel()
		return <-status
	})
}

func TestHalves(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	url, stop := agentHalf(t)
	dir := folder(t, map[string]int{"a": 10, "b": 20})
	var group sync.WaitGroup
	for range 3 { // the agent keeps nothing between runs, nor between clients
		group.Go(func() {
			var out, log exampletest.Output
			if status := run(t.Context(), []string{"-connect", url, "-dir", dir}, &out, &log); status != 0 {
				t.Errorf("run(-connect) = %d, want 0\n%s%s", status, out.String(), log.String())
			}
		})
	}
	group.Wait()
	idle, err := peer.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status := stop(); status != 0 {
		t.Errorf("run(-listen) = %d after an interrupt, want 0", status)
	}
	defer idle.Close()
	select {
	case <-idle.Done():
	case <-time.After(drainTime):
		t.Fatal("the agent has ended, and a connection to it has not")
	}
	if err := idle.Err(); err != nil {
		t.Errorf("Err() = %v after the agent's end, want nil", err)
	}
}

// An agent that is interrupted finishes the runs that are open, although they
// need calls in both directions for that.
func TestAgentDrains(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	url, stop := agentHalf(t)
	ended := make(chan int, 1)
	out := &exampletest.Output{On: string(userAllow), Do: func() { go func() { ended <- stop() }() }}
	var log exampletest.Output
	dir := folder(t, map[string]int{"a": 10, "b": 20})
	if status := run(t.Context(), []string{"-connect", url, "-dir", dir}, out, &log); status != 0 {
		t.Errorf("run(-connect) = %d, want 0\n%s%s", status, out.String(), log.String())
	}
	if status := <-ended; status != 0 {
		t.Errorf("run(-listen) = %d after an interrupt, want 0", status)
	}
}

func TestInterrupt(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	out := &exampletest.Output{On: string(userAllow), Do: func() { interrupt(errors.New("stop it")) }}
	var log exampletest.Output
	status := run(ctx, []string{"-dir", t.TempDir()}, out, &log)
	if status != 1 || !strings.Contains(log.String(), "stop it") || strings.Contains(strings.ToLower(out.String()), "matched") {
		t.Errorf("run() = %d, want 1, why, and no verdict\n%s%s", status, out.String(), log.String())
	}
}

// A client that is interrupted while the agent speaks: the handler stops, and the
// screen says so.
func TestInterruptWords(t *testing.T) {
	defer exampletest.NoGoroutines(t)
	url, stop := agentHalf(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	out := &exampletest.Output{On: "◀┄┄ ", Do: func() { interrupt(errors.New("stop it")) }}
	var log exampletest.Output
	dir := folder(t, map[string]int{"a": 10, "b": 20})
	status := run(ctx, []string{"-connect", url, "-dir", dir}, out, &log)
	if status != 1 || !strings.Contains(log.String(), "stop it") {
		t.Errorf("run() = %d, want 1 and why\n%s", status, log.String())
	}
	for _, want := range []string{"interrupted: the call was cancelled after ", "the agent has stopped, and answered all 2 calls", "-32800: request"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the screen does not say %q:\n%s", want, out.String())
		}
	}
	if status := stop(); status != 0 {
		t.Errorf("run(-listen) = %d", status)
	}
}

// A stream goes on over cuts, and the screen shows where.
func TestCut(t *testing.T) {
	status, stdout, stderr := program(t, "-dir", folder(t, map[string]int{"a": 10, "b": 20}), "-cut", "50ms")
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	m := regexp.MustCompile(`(?m)^matched: .*, (\d+) words, over (\d+) cuts$`).FindStringSubmatch(stdout)
	if m == nil {
		t.Fatalf("no count of cuts in:\n%s", stdout)
	}
	words, _ := strconv.Atoi(m[1])
	cuts, _ := strconv.Atoi(m[2])
	if n := strings.Count(stdout, "✂ cut after word "); n != cuts || cuts < 2 || words < 10 {
		t.Errorf("%d cuts are shown of %d, among %d words", n, cuts, words)
	}
	// What was heard before a cut is followed by the next word.
	for _, line := range regexp.MustCompile(`goes on .* with word (\d+)`).FindAllStringSubmatch(stdout, -1) {
		if next, _ := strconv.Atoi(line[1]); next < 1 || next > words+1 {
			t.Errorf("%q of %d words", line[0], words)
		}
	}
	if !strings.Contains(stdout, "✓ goes on ") {
		t.Errorf("nothing goes on in:\n%s", stdout)
	}
}

func TestStatus(t *testing.T) {
	file := filepath.Join(folder(t, map[string]int{"a": 1}), "a")
	tests := map[string]struct {
		args   []string
		status int
		stderr string
	}{
		"help":                     {[]string{"-h"}, 0, "the folder the agent may look into"},
		"unknown flag":             {[]string{"-x"}, 2, "-x"},
		"argument":                 {[]string{"x"}, 2, `argument "x" is not a flag`},
		"no number":                {[]string{"-files", "x"}, 2, `invalid value "x" for flag -files`},
		"no files":                 {[]string{"-files", "0"}, 2, "-files 0 is not in 1 to 100"},
		"too many files":           {[]string{"-files", "101"}, 2, "-files 101 is not in 1 to 100"},
		"no such folder":           {[]string{"-dir", file + "x"}, 2, "no such file"},
		"a file as folder":         {[]string{"-dir", file}, 2, "not a directory"},
		"no address":               {[]string{"-listen", "x"}, 2, `-listen needs HOST:PORT: address x`},
		"both halves":              {[]string{"-listen", ":0", "-connect", "ws://x/"}, 2, "-listen runs the agent alone"},
		"cuts too often":           {[]string{"-cut", "1ms"}, 2, "-cut 1ms is not in 50ms to 5s"},
		"cuts too seldom":          {[]string{"-cut", "1h"}, 2, "-cut 1h0m0s is not in 50ms to 5s"},
		"cuts alone":               {[]string{"-cut", "1s", "-listen", ":0"}, 2, "-listen runs the agent alone"},
		"nobody to cut":            {[]string{"-cut", "1s", "-connect", "ws://127.0.0.1:1/"}, 1, "connection refused"},
		"no URL":                   {[]string{"-connect", "x"}, 2, `-connect "x" is not a ws:// or wss:// URL`},
		"another scheme":           {[]string{"-connect", "ftp://x/"}, 2, `-connect "ftp://x/" is not`},
		"nobody listens":           {[]string{"-connect", "ws://127.0.0.1:1/"}, 1, "connection refused"},
		"an address of others":     {[]string{"-listen", "192.0.2.1:0"}, 1, "192.0.2.1:0"},
		"a number that is no port": {[]string{"-listen", "127.0.0.1:99999"}, 1, "99999"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := program(t, tt.args...)
			if status != tt.status || !strings.Contains(stderr, tt.stderr) || stdout != "" {
				t.Errorf("run(%q) = %d, want %d and %q on stderr\n%s%s", tt.args, status, tt.status, tt.stderr, stdout, stderr)
			}
		})
	}
}

// What another agent may do on the wire, and duet does not.
func TestTapFinds(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"m"}`
	tests := map[string]struct {
		toAgent, toClient []string
		want              string
	}{
		"a call without an answer": {[]string{call}, nil, "call 1 of m was not answered"},
		"an answer twice":          {[]string{call}, []string{`{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","id":1,"result":1}`}, "an answer to 1, which is no open call"},
		"an answer to nothing":     {nil, []string{`{"jsonrpc":"2.0","id":"1","result":1}`}, `an answer to "1", which is no open call`},
		"an answer that is none":   {nil, []string{`{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`}, "bad response"},
		"no JSON":                  {nil, []string{`{`}, "an envelope that is not JSON-RPC"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			wire := &tap{screen: newScreen(io.Discard)}
			for _, m := range tt.toAgent {
				wire.see(toAgent, []byte(m))
			}
			for _, m := range tt.toClient {
				wire.see(toClient, []byte(m))
			}
			if got := wire.sum(); len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("sum() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestColours(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.message(toAgent, "plain", "", nil)
	if text := out.String(); strings.ContainsRune(text, '\x1b') {
		t.Errorf("message() drew %q in colour, and this is no terminal", text)
	}
	s.colours = true
	s.message(toAgent, "call", "", []byte("\x1b[31m\u009b"))
	if text := out.String(); !strings.Contains(text, "\x1b[36mcall ") || !strings.HasSuffix(text, "\x1b[0m  ·[31m·\n") {
		t.Errorf("message() drew %q, want the call in colour and its text without", text)
	}
}

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for i := range 100 {
		took = append(took, time.Duration(100-i)*time.Millisecond)
	}
	for p, want := range map[float64]string{0.5: "50.00 ms", 0.99: "99.00 ms", 1: "100.00 ms"} {
		if got := percentile(took, p); got != want {
			t.Errorf("percentile(1..100 ms, %v) = %s, want %s", p, got, want)
		}
	}
	if got := percentile(took[:1], 0.5); got != "100.00 ms" {
		t.Errorf("percentile(100 ms, 0.5) = %s, want 100.00 ms", got)
	}
	if got := percentile(nil, 0.5); got != "-" {
		t.Errorf("percentile() = %s, want -", got)
	}
}

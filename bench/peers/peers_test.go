package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems"
)

// TestMain lets the test program be the child processes of the benchmark.
func TestMain(m *testing.M) {
	load.Child()
	child()
	os.Exit(m.Run())
}

// TestPlanHasVerdicts: what is judged is measured, and each cell has its own key.
func TestPlanHasVerdicts(t *testing.T) {
	for _, short := range []bool{false, true} {
		keys := make(map[string]bool)
		for _, g := range plan(short) {
			for _, c := range g.cells {
				if keys[c.key()] {
					t.Errorf("plan(%v) has %q twice", short, c.key())
				}
				keys[c.key()] = true
				if !known(c.system) {
					t.Errorf("plan(%v) has %q, want a system there is", short, c.system)
				}
			}
		}
		for _, v := range verdicts() {
			if !v.value.planned(keys) || v.of != nil && !v.of.planned(keys) {
				t.Errorf("plan(%v) lacks what %q needs", short, v.name)
			}
		}
	}
}

func known(name string) bool {
	return slices.ContainsFunc(systems.All(), func(s load.System) bool { return s.Name == name })
}

// TestPlanFitsKinds: no system is asked for what it cannot do.
func TestPlanFitsKinds(t *testing.T) {
	kinds := make(map[string][]load.Kind)
	for _, s := range systems.All() {
		kinds[s.Name] = s.Kinds
	}
	for _, g := range plan(false) {
		for _, c := range g.cells {
			if c.idle == 0 && !slices.Contains(kinds[c.system], c.load.Kind) {
				t.Errorf("plan has %q, and that system has only %v", c.key(), kinds[c.system])
			}
		}
	}
}

// TestPlanTime: the whole run ends in twelve minutes, the short one in 20 seconds.
func TestPlanTime(t *testing.T) {
	for _, tt := range []struct {
		short  bool
		rounds int
		each   time.Duration
		most   time.Duration
	}{
		{false, 5, 500 * time.Millisecond, 12 * time.Minute},
		{true, 1, 5 * time.Millisecond, 20 * time.Second},
	} {
		p := newProgress(os.Stderr, plan(tt.short), tt.rounds, tt.each)
		if p.left > tt.most {
			t.Errorf("plan(%v) takes %v, want at most %v", tt.short, p.left, tt.most)
		}
	}
}

// reports are made by hand: the two ends of a ratio, in rounds.
func madeReport(values map[string][]float64) *report {
	var r report
	for key, rounds := range values {
		r.Planned = append(r.Planned, key)
		system, name, _ := strings.Cut(key, "/")
		r.Planned[len(r.Planned)-1] = system + " " + name
		for i, v := range rounds {
			r.Results = append(r.Results, load.Result{System: system, Round: i + 1, Load: load.Load{Name: name}, PerSecond: v, P99: v})
		}
	}
	return &r
}

func TestJudge(t *testing.T) {
	mine := term{systems: []string{"a"}, load: "l", pick: perSecond}
	theirs := term{systems: []string{"b", "c"}, load: "l", pick: perSecond}
	tail := term{systems: []string{"a"}, load: "l", pick: p99, least: true}
	tails := term{systems: []string{"b", "c"}, load: "l", pick: p99, least: true}
	ratio := verdict{name: "ratio", value: mine, of: &theirs, must: 1.9, aim: 2.5}
	worst := verdict{name: "tail", value: tail, of: &tails, must: 0.6, aim: 0.3, atMost: true}
	plain := verdict{name: "figure", value: mine, must: 8, aim: 4, atMost: true}

	tests := []struct {
		name   string
		v      verdict
		values map[string][]float64
		word   string
	}{
		{"passes against the better mode", ratio, map[string][]float64{"a/l": {190}, "b/l": {100}, "c/l": {50}}, "ok"},
		{"is missed by a little", ratio, map[string][]float64{"a/l": {189.9}, "b/l": {100}, "c/l": {50}}, "MISSED"},
		{"the other mode is the better one", ratio, map[string][]float64{"a/l": {190}, "b/l": {50}, "c/l": {101}}, "MISSED"},
		{"reaches its aim", ratio, map[string][]float64{"a/l": {250}, "b/l": {100}, "c/l": {50}}, "ok, aim reached"},
		{"medians count, not the best or the last", ratio, map[string][]float64{"a/l": {100, 190, 900, 190, 189}, "b/l": {100, 9, 300, 100, 100}, "c/l": {1}}, "ok"},
		{"lacks its own value", ratio, map[string][]float64{"a/l": nil, "b/l": {100}, "c/l": {50}}, "MISSED"},
		{"lacks one of two to compare with", ratio, map[string][]float64{"a/l": {900}, "b/l": {100}, "c/l": nil}, "MISSED"},
		{"was filtered out", ratio, map[string][]float64{"a/l": {900}, "b/l": {100}}, "nothing is judged: the flags leave out what there is to compare"},
		{"a zero to divide by is no value", ratio, map[string][]float64{"a/l": {900}, "b/l": {0}, "c/l": {0}}, "MISSED"},
		{"a tail passes against the lower one", worst, map[string][]float64{"a/l": {60}, "b/l": {100}, "c/l": {500}}, "ok"},
		{"a tail is missed by a little", worst, map[string][]float64{"a/l": {60.1}, "b/l": {100}, "c/l": {500}}, "MISSED"},
		{"a figure passes", plain, map[string][]float64{"a/l": {8}}, "ok"},
		{"a figure is missed by a little", plain, map[string][]float64{"a/l": {8.01}}, "MISSED"},
		{"a figure reaches its aim", plain, map[string][]float64{"a/l": {4}}, "ok, aim reached"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var groups []group
			for _, name := range []string{"a", "b", "c"} {
				groups = append(groups, group{cells: []cell{{system: name, load: load.Load{Name: "l"}}}})
			}
			var out bytes.Buffer
			missed := printVerdicts(&out, judge([]verdict{tt.v}, madeReport(tt.values), groups))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			line := lines[len(lines)-1]
			if line != tt.word && !strings.HasSuffix(line, "  "+tt.word) {
				t.Errorf("printVerdicts() = %q, want %q at its end", line, tt.word)
			}
			if want := map[bool]int{true: 1}[tt.word == "MISSED"]; missed != want {
				t.Errorf("printVerdicts() = %d missed, want %d", missed, want)
			}
		})
	}
}

// TestJudgeIdle judges figures of idle connections, which come from elsewhere.
func TestJudgeIdle(t *testing.T) {
	r := &report{Planned: []string{"duet " + holdLoad}}
	groups := []group{{cells: []cell{{system: "duet", load: load.Load{Name: holdLoad}}}}}
	find := func() judged {
		for _, j := range judge(verdicts(), r, groups) {
			if j.value.load == holdLoad {
				return j
			}
		}
		t.Fatalf("verdicts() has none of %s", holdLoad)
		return judged{}
	}
	if j := find(); !j.missed() {
		t.Errorf("missed() = false without a value, want true")
	}
	r.Idle = []idleResult{{System: "duet", Round: 1, Load: holdLoad, Memory: load.Memory{Held: 9000}}}
	if j := find(); j.missed() || j.aimed() {
		t.Errorf("9,000 held = missed %v, aimed %v, want neither", j.missed(), j.aimed())
	}
	r.Idle[0].Held = 8999
	if j := find(); !j.missed() {
		t.Errorf("missed() = false with 8,999 held, want true")
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3, 1, 2}, spread{2, 1, 3}},
		{[]float64{4, 1, 2, 3}, spread{2.5, 1, 4}},
		{[]float64{7}, spread{7, 7, 7}},
	} {
		if got, ok := spreadOf(tt.values); !ok || got != tt.want {
			t.Errorf("spreadOf(%v) = %v, %v, want %v", tt.values, got, ok, tt.want)
		}
	}
	if _, ok := spreadOf(nil); ok {
		t.Error("spreadOf(nil) = true, want false")
	}
}

// TestPictures draws a report made by hand, and looks whether it is well-formed
// and names its systems.
func TestPictures(t *testing.T) {
	r := &report{Environment: here(), Rounds: 5, Date: time.Now()}
	for i, system := range systems.All() {
		for _, n := range inFlight {
			name := fmt.Sprintf(typed64, n)
			if !slices.Contains(system.Kinds, load.Typed) {
				name = fmt.Sprintf(raw64, n)
			}
			v := float64(1000 * (i + n))
			r.Results = append(r.Results, load.Result{System: system.Name, Round: 1, Load: load.Load{Name: name}, PerSecond: v, P50: v / 10, P99: v, P999: 2 * v})
		}
	}
	folder := t.TempDir()
	if err := pictures(r, folder); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"throughput.svg": ">go.lsp.dev/jsonrpc2<", "latency.svg": ">go.lsp.dev, inline<"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{want, ">duet<"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		d := xml.NewDecoder(bytes.NewReader(text))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty := t.TempDir()
	if err := pictures(new(report), empty); err != nil {
		t.Errorf("pictures(empty) = %v, want nil", err)
	}
	if entries, _ := os.ReadDir(empty); len(entries) > 0 {
		t.Errorf("pictures(empty) drew %v, want nothing", entries)
	}
}

func TestApart(t *testing.T) {
	got := apart([]vg.Length{1, 2, 50}, 10, 0)
	for i := 1; i < len(got); i++ {
		if got[i]-got[i-1] < 10-1e-9 {
			t.Errorf("apart(1, 2, 50) = %v, want 10 between", got)
		}
	}
	if got[0] < 0 || got[2] != 50 {
		t.Errorf("apart(1, 2, 50) = %v, want none below 0 and 50 where it is", got)
	}
}

// TestShort runs a part of the program with real child processes.
func TestShort(t *testing.T) {
	folder := t.TempDir()
	var out bytes.Buffer
	args := []string{"-short", "-out", folder, "-system", "^(duet|raw coder/websocket)$", "-load", "64B-16$|open-50|typed-64B-256|idle"}
	if code := run(t.Context(), args, &out, os.Stderr); code != 0 {
		t.Fatalf("run(%q) = %d, want 0; it said\n%s", args, code, &out)
	}
	for _, want := range []string{"64 B, 16 in flight", "64 B, open loop, 50 %", "idle connections"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("run(%q) printed no %q", args, want)
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > columns {
			t.Errorf("a line has %d columns, want at most %d: %q", n, columns, line)
		}
	}
	r, err := readReport(filepath.Join(folder, "peers.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) == 0 || len(r.Idle) != 2 || len(r.Failed) != 0 {
		t.Errorf("peers.json has %d results, %d idle, %d failed; want some, 2, 0", len(r.Results), len(r.Idle), len(r.Failed))
	}
	// Looked at again, without measuring: what was short is not judged.
	again := []string{"-from", filepath.Join(folder, "peers.json"), "-out", filepath.Join(folder, "new")}
	if code := run(t.Context(), again, io.Discard, os.Stderr); code != 0 {
		t.Errorf("run(%q) = %d, want 0", again, code)
	}
	r.Short = false
	if err := r.write(filepath.Join(folder, "peers.json")); err != nil {
		t.Fatal(err)
	}
	r.Results = nil
	if err := r.write(filepath.Join(folder, "missing.json")); err != nil {
		t.Fatal(err)
	}
	missing := []string{"-from", filepath.Join(folder, "missing.json"), "-out", folder}
	if code := run(t.Context(), missing, io.Discard, quiet(t)); code != exitMissed {
		t.Errorf("run(%q) = %d, want %d", missing, code, exitMissed)
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"unknown flag", []string{"-frobnicate"}},
		{"an argument", []string{"duet"}},
		{"no rounds", []string{"-rounds", "0"}},
		{"no time", []string{"-time", "0s"}},
		{"a broken expression", []string{"-system", "("}},
		{"nothing matches", []string{"-system", "^nobody$"}},
		{"measure and do not", []string{"-from", "x.json", "-short"}},
		{"no such file", []string{"-from", "does-not-exist.json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"-out", t.TempDir()}, tt.args...)
			if code := run(t.Context(), args, io.Discard, quiet(t)); code != exitFailed {
				t.Errorf("run(%q) = %d, want %d", tt.args, code, exitFailed)
			}
		})
	}
}

func quiet(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestFailure: a system that fails has no result, is started again once, and makes
// the run fail.
func TestFailure(t *testing.T) {
	r := new(report)
	b := &bench{rounds: 3, time: time.Millisecond, report: r}
	c := cell{system: systems.CoderName, load: typed(typed64, 64, 1)} // it has no typed calls
	groups := []group{{"wrong", []cell{c}}}
	b.progress = newProgress(quiet(t), groups, b.rounds, b.time)
	b.run(t.Context(), groups)
	if len(r.Failed) != maxFailures || len(r.Results) != 0 {
		t.Errorf("run() = %d failed, %d results, want %d and 0", len(r.Failed), len(r.Results), maxFailures)
	}
	if code := (settings{out: t.TempDir()}).finish(r, groups, io.Discard, io.Discard); code != exitFailed {
		t.Errorf("finish() = %d, want %d", code, exitFailed)
	}
}

// TestServeTasks: a child answers what it cannot do, and ends with its input.
func TestServeTasks(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader(`{"idle":1}` + "\n" + `{"load":{"kind":"odd"},"time":1}` + "\n")
	if err := serveTasks(context.Background(), systems.TCPName, in, &out); err != nil {
		t.Fatalf("serveTasks() = %v, want nil", err)
	}
	outcomes := json.NewDecoder(&out)
	for i := range 2 {
		var o outcome
		if err := outcomes.Decode(&o); err != nil {
			t.Fatal(err)
		}
		if o.Error == "" {
			t.Errorf("outcome %d has no error, want one", i)
		}
	}
	if err := serveTasks(context.Background(), "nobody", in, &out); err == nil {
		t.Error("serveTasks(nobody) = nil, want an error")
	}
}

// A run of less than everything must not take the place of the stored results.
func TestOut(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "../results"},
		{[]string{"-short"}, ""},
		{[]string{"-load", "open"}, ""},
		{[]string{"-system", "duet"}, ""},
		{[]string{"-rounds", "1"}, ""},
		{[]string{"-time", "5ms"}, ""},
		{[]string{"-load", "open", "-out", "here"}, "here"},
		{[]string{"-from", "x.json"}, "."},
		{[]string{"-from", "../results/peers.json"}, "../results"},
		{[]string{"-from", "other/peers.json", "-load", "open"}, ""},
	} {
		s, err := parse(tt.args, io.Discard)
		if err != nil || s.out != filepath.FromSlash(tt.want) {
			t.Errorf("parse(%q) writes to %q, %v; want %q", tt.args, s.out, err, tt.want)
		}
	}
}

// The stored command tells what was measured, and nothing of the machine.
func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "go run ."},
		{[]string{"-rounds", "11", "-out", "some/where"}, "go run . -rounds 11"},
		{[]string{"--out=some/where", "-time", "1s"}, "go run . -time 1s"},
		{[]string{"-out"}, "go run ."},
	} {
		if got := command(tt.args); got != tt.want {
			t.Errorf("command(%q) = %q, want %q", tt.args, got, tt.want)
		}
	}
}

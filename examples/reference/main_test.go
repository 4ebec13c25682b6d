package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest/wire"
	"github.com/duetrpc/duet/profile"
	"github.com/duetrpc/duet/stream"
	"github.com/duetrpc/duet/wsconn"
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

// TestProfiles serves each profile and calls the methods in the forms it has.
func TestProfiles(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			p, _ := profile.Named(name)
			var reg peer.Registry
			ticks := make(chan string, 8)
			reg.HandleNotification("tick", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
				ticks <- string(req.Params)
				return nil, nil
			}))
			reg.Handle("ask", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
				return json.RawMessage(`{"v":42}`), nil
			}))
			meta := peer.Meta{}
			for _, required := range p.RequiredMeta {
				meta[required] = json.RawMessage("{}")
			}
			conn, err := peer.Dial(t.Context(), startReference(t, "-profile", name), &peer.Options{Profile: p, Handler: &reg, Meta: meta})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			objects := p.Rules.ObjectParams
			echoed := func(params string) string { // with what this end has in every request
				if len(meta) == 0 {
					return params
				}
				return string(codec.AppendObject(nil, []byte(params), []codec.Member{{Name: "_meta", Value: must(json.Marshal(meta))}}))
			}
			form := func(plain, object string) string {
				if objects {
					return object
				}
				return plain
			}
			for _, c := range []struct{ method, params, want string }{
				{"echo", `{"z":1.0}`, echoed(`{"z":1.0}`)},
				{"echo", "", form("null", echoed("{}"))},
				{"add", `{"a":1,"b":2}`, form("3", `{"sum":3}`)},
				{"count", `{"n":3,"ms":1}`, form("3", `{"n":3}`)},
				{"sleep", `{"ms":1}`, form("1", "{}")},
				{"notifyMe", `{"n":2}`, form("2", `{"sent":2}`)},
				{"callMe", `{"method":"ask"}`, form(`{"v":42}`, `{"value":{"v":42}}`)},
			} {
				if c.method == "callMe" && p.OneWay {
					var e *peer.Error
					if err := conn.Call(ctx, c.method, json.RawMessage(c.params), nil); !errors.As(err, &e) || e.Code != peer.InternalError {
						t.Errorf("callMe() = %v, where nobody may call back", err)
					}
					continue
				}
				var params any
				if c.params != "" {
					params = json.RawMessage(c.params)
				}
				var got json.RawMessage
				if err := conn.Call(ctx, c.method, params, &got); err != nil || string(got) != c.want {
					t.Errorf("%s(%s) = %s, %v, want %s", c.method, c.params, got, err, c.want)
				}
			}
			for i := range 2 {
				if got, want := <-ticks, fmt.Sprintf(`{"i":%d}`, i); got != want {
					t.Errorf("tick %d = %s, want %s", i, got, want)
				}
			}
			var e *peer.Error
			if err := conn.Call(ctx, "fail", nil, nil); !errors.As(err, &e) || e.Code != 1234 || string(e.Data) != `{"k":1}` {
				t.Errorf("fail() = %v", err)
			}
			if err := conn.Call(ctx, "subtract", nil, nil); !errors.As(err, &e) || e.Code != map[bool]peer.Code{true: peer.MethodNotFound, false: peer.InvalidParams}[objects] {
				t.Errorf("subtract() = %v", err)
			}
		})
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// TestAgentMethods plays what an agent does: progress, a stream, a cancel.
func TestAgentMethods(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			p, _ := profile.Named(name)
			meta := peer.Meta{}
			for _, required := range p.RequiredMeta {
				meta[required] = json.RawMessage("{}")
			}
			conn, err := peer.Dial(t.Context(), startReference(t, "-profile", name), &peer.Options{Profile: p, Meta: meta})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()

			var got []peer.Progress
			err = conn.Call(ctx, "count", map[string]int{"n": 4, "ms": 1}, nil, peer.OnProgress(func(u peer.Progress) { got = append(got, u) }))
			want := []peer.Progress{{Done: 1, Total: 4}, {Done: 2, Total: 4}, {Done: 3, Total: 4}, {Done: 4, Total: 4}}
			if p.Progress.WorkDone {
				want = []peer.Progress{{Done: 25, Total: 100}, {Done: 50, Total: 100}, {Done: 75, Total: 100}, {Done: 100, Total: 100}}
			}
			if p.Progress.Off {
				want = nil
			}
			if errors.Is(err, peer.ErrNoPlace) != p.Progress.Off || !p.Progress.Off && err != nil || !slices.Equal(got, want) {
				t.Errorf("count: %v, %v, want %v", got, err, want)
			}

			type item struct {
				I    int    `json:"i"`
				Data string `json:"data"`
			}
			rows := stream.Method[map[string]int, item, json.RawMessage]("stream").Call(ctx, conn, map[string]int{"n": 200, "bytes": 100})
			n := 0
			var failure error
			for row, err := range rows.All() {
				if err != nil {
					failure = err
				} else if row.I != n || len(row.Data) != 100 {
					t.Fatalf("row %d is %v", n, row)
				} else {
					n++
				}
			}
			if errors.Is(failure, peer.ErrNoPlace) != p.Progress.Off || !p.Progress.Off && (failure != nil || n != 200) {
				t.Errorf("stream: %d rows, %v", n, failure)
			}

			feed := stream.Feed[struct{}, int, json.RawMessage]("collect").Call(ctx, conn, struct{}{})
			for i := range 200 {
				if err := feed.Send(i); err != nil {
					if !p.Progress.Off || !errors.Is(err, stream.ErrEnded) || !errors.Is(err, peer.ErrNoPlace) {
						t.Errorf("collect: Send %d = %v", i, err)
					}
					break
				}
			}
			wantN := map[bool]string{true: `{"n":200}`, false: "200"}[p.Rules.ObjectParams]
			if out, err := feed.Result(); errors.Is(err, peer.ErrNoPlace) != p.Progress.Off || !p.Progress.Off && (err != nil || string(out) != wantN) {
				t.Errorf("collect: %s, %v", out, err)
			}

			sleeping, wake := context.WithCancel(ctx)
			slept := make(chan error, 1)
			go func() { slept <- conn.Call(sleeping, "sleep", map[string]int{"ms": 3_600_000}, nil) }()
			for conn.Stats().Pending == 0 {
				runtime.Gosched()
			}
			wake()
			if err := <-slept; !errors.Is(err, context.Canceled) {
				t.Errorf("sleep = %v", err)
			}
			for _, params := range []map[string]int{{"n": -1}, {"n": 1 << 30}, {"n": 1, "bytes": -1}} {
				var e *peer.Error
				_, err := stream.Method[map[string]int, item, json.RawMessage]("stream").Call(ctx, conn, params).Result()
				if !p.Progress.Off && (!errors.As(err, &e) || e.Code != peer.InvalidParams) {
					t.Errorf("stream(%v) = %v", params, err)
				}
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-profile", "x"}, {"-nosuch"}, {"extra"}} {
		var usage usageError
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.As(err, &usage) {
			t.Errorf("run(%q) = %v, want a usageError", args, err)
		}
	}
}

// TestRecordedStream replays the conversation of docs/streams.md.
func TestRecordedStream(t *testing.T) {
	page, err := os.ReadFile("../../docs/streams.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "## A conversation")
	socket, _, err := wsconn.Dial(t.Context(), startReference(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close(nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lines := 0
	for line := range strings.Lines(after) {
		if text, ok := strings.CutPrefix(line, "--> "); ok {
			if err := socket.Write(ctx, []byte(strings.TrimSpace(text))); err != nil {
				t.Fatal(err)
			}
		} else if text, ok := strings.CutPrefix(line, "<-- "); ok {
			got, err := socket.Read(ctx, nil)
			if want := strings.TrimSpace(text); err != nil || string(got) != want {
				t.Fatalf("received %s, %v\nwant %s", got, err, want)
			}
			lines++
		}
	}
	if lines < 10 {
		t.Errorf("the page has %d answers", lines)
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest/wire"
	"github.com/duetrpc/duet/profile"
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
			conn, err := peer.Dial(t.Context(), startReference(t, "-profile", name), &peer.Options{Profile: p, Handler: &reg})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			objects := p.Rules.ObjectParams
			form := func(plain, object string) string {
				if objects {
					return object
				}
				return plain
			}
			for _, c := range []struct{ method, params, want string }{
				{"echo", `{"z":1.0}`, `{"z":1.0}`},
				{"echo", "", form("null", "{}")},
				{"add", `{"a":1,"b":2}`, form("3", `{"sum":3}`)},
				{"sleep", `{"ms":1}`, form("1", "{}")},
				{"notifyMe", `{"n":2}`, form("2", `{"sent":2}`)},
				{"callMe", `{"method":"ask"}`, form(`{"v":42}`, `{"value":{"v":42}}`)},
			} {
				var params any
				if c.params != "" {
					params = json.RawMessage(c.params)
				}
				var got json.RawMessage
				if err := conn.Call(t.Context(), c.method, params, &got); err != nil || string(got) != c.want {
					t.Errorf("%s(%s) = %s, %v, want %s", c.method, c.params, got, err, c.want)
				}
			}
			for i := range 2 {
				if got, want := <-ticks, fmt.Sprintf(`{"i":%d}`, i); got != want {
					t.Errorf("tick %d = %s, want %s", i, got, want)
				}
			}
			var e *peer.Error
			if err := conn.Call(t.Context(), "fail", nil, nil); !errors.As(err, &e) || e.Code != 1234 || string(e.Data) != `{"k":1}` {
				t.Errorf("fail() = %v", err)
			}
			if err := conn.Call(t.Context(), "subtract", nil, nil); !errors.As(err, &e) || e.Code != map[bool]peer.Code{true: peer.MethodNotFound, false: peer.InvalidParams}[objects] {
				t.Errorf("subtract() = %v", err)
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

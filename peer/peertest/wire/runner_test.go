package wire_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer/peertest/wire"
)

const probeID = `"id":"__probe"`

// named returns the embedded case with this id, or one that can not pass.
func named(t *testing.T, id string) *wire.Case {
	t.Helper()
	cases, err := wire.Cases()
	i := slices.IndexFunc(cases, func(c wire.Case) bool { return c.ID == id })
	if i < 0 {
		t.Errorf("no case %s (error %v)", id, err)
		return &wire.Case{}
	}
	return &cases[i]
}

// parsed returns one case made of these members.
func parsed(t *testing.T, members string) *wire.Case {
	t.Helper()
	cases, err := wire.Parse(strings.NewReader(`{"id":"T-1",` + members + `}`))
	if err != nil {
		t.Error(err)
		return &wire.Case{}
	}
	return &cases[0]
}

// atOnce runs n cases side by side: each of them mostly waits, and parallel
// subtests would wait one processor's number at a time.
func atOnce(n int, run func(i int) wire.Outcome) []wire.Outcome {
	outcomes := make([]wire.Outcome, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { outcomes[i] = run(i) })
	}
	all.Wait()
	return outcomes
}

func TestRightServerPasses(t *testing.T) {
	url := script{}.start(t)
	ids := []string{"ID-001", "ID-010", "ID-017", "ID-018", "ID-024", "NOT-001", "NOT-008", "NOT-009", "RSP-001", "CB-001",
		"CB-003", "CB-015", "ERR-003", "JSN-003", "JSN-014", "JSN-018", "FRM-002", "FRM-003", "FRM-004", "FRM-005", "FRM-006",
		"FRM-007", "FRM-008", "FRM-009", "FRM-011"}
	var cases []wire.Case
	for _, id := range ids {
		cases = append(cases, *named(t, id))
	}
	r := wire.Runner{URL: url, Offers: []string{"numeric-ids", "ordered-notifications"}}
	for _, out := range r.RunAll(t.Context(), cases) {
		if !out.Pass || out.Alternative != 0 || out.Skipped {
			t.Errorf("Run(%s) = %+v, want a pass by the first expectation", out.Case, out)
		}
	}
}

// Each of these servers does one thing wrong, and is told which.
func TestWrongServerFails(t *testing.T) {
	isProbe := func(in string) bool { return strings.Contains(in, probeID) }
	// but leaves the probe alone, so that only the case can fail.
	but := func(f func(c *conn, out []string) []string) script {
		return script{reply: func(c *conn, in string, out []string) []string {
			if isProbe(in) {
				return out
			}
			return f(c, out)
		}}
	}
	send := func(msgs ...string) script { return but(func(*conn, []string) []string { return msgs }) }
	frame := func(first byte, payload string) script {
		return but(func(c *conn, _ []string) []string { c.frame(first, []byte(payload)); return nil })
	}
	onProbe := func(f func(c *conn, out []string) []string) script {
		return script{reply: func(c *conn, in string, out []string) []string {
			if isProbe(in) {
				return f(c, out)
			}
			return out
		}}
	}
	const right = `{"jsonrpc":"2.0","id":1,"result":["x"]}`
	tests := []struct {
		name, id string
		server   script
		want     string // in Problem
	}{
		{"answers twice", "ID-001", but(func(_ *conn, out []string) []string { return append(out, out...) }), "2 messages, want 1"},
		{"id as a float", "ID-001", send(strings.Replace(right, `"id":1`, `"id":1.0`, 1)), "message 1 is not expected"},
		{"id as a string", "ID-001", send(strings.Replace(right, `"id":1`, `"id":"1"`, 1)), "message 1 is not expected"},
		{"a member too many", "ID-001", send(strings.Replace(right, `{`, `{"x":1,`, 1)), "message 1 is not expected"},
		{"a member missing", "ID-001", send(strings.Replace(right, `"jsonrpc":"2.0",`, ``, 1)), "message 1 is not expected"},
		{"no answer", "ID-001", send(), `never came: {"jsonrpc":"2.0","id":1,"result":["x"]}; the case was not over in time; no messages came`},
		{"answers a notification", "NOT-001", send(`{"jsonrpc":"2.0","id":null,"result":null}`), "message 1 is not expected"},
		{"answers a response", "RSP-001", send(`{"jsonrpc":"2.0","id":999,"error":{"code":-32600,"message":"m"}}`), "message 1 is not expected; and no alternative fits"},
		{"binary message", "ID-001", frame(0x82, right), "message 1 is binary, not text"},
		{"duplicate member", "ID-001", send(strings.Replace(right, `{`, `{"\u0069d":1,`, 1)), `member "id" stands twice`},
		{"nested duplicate", "ID-012", send(`{"jsonrpc":"2.0","id":1e400,"error":{"code":-32600,"message":"m","data":[{"a":1,"a":1}]}}`), `member "a" stands twice`},
		{"two texts in one message", "ID-001", send(right + right), "something follows the JSON text at byte 39"},
		{"not JSON", "ID-001", send(`{'id':1}`), "not JSON at byte 1"},
		{"masked frame", "ID-001", but(func(c *conn, _ []string) []string { c.nc.Write([]byte{0x81, 0x80, 0, 0, 0, 0}); return nil }), "a masked frame"},
		{"reserved bit", "ID-001", frame(0xC1, right), "a frame with a reserved bit"},
		{"unknown opcode", "ID-001", frame(0x83, right), "a frame with opcode 0x3"},
		{"continuation of nothing", "ID-001", frame(0x80, right), "a continuation of nothing"},
		{"message inside a message", "ID-001", but(func(c *conn, _ []string) []string { c.frame(0x01, nil); return []string{right} }), "a message inside a message"},
		{"not UTF-8", "ID-001", send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[\"\xff\"]}"), "not UTF-8"},
		{"no pong", "FRM-007", script{pong: func(*conn, []byte) {}}, `ping "hi" was not answered`},
		{"another pong", "FRM-007", script{pong: func(c *conn, _ []byte) { c.frame(0x8A, []byte("ho")) }}, `ping "hi" was not answered`},
		{"closes", "NOT-001", but(func(c *conn, _ []string) []string { c.close(1011); return nil }), "the connection was closed with 1011, want it to stay up"},
		{"drops", "NOT-001", but(func(c *conn, _ []string) []string { c.nc.Close(); return nil }), "closed without a close frame, want it to stay up"},
		{"closes after the probe", "NOT-001", onProbe(func(c *conn, out []string) []string { c.text(out[0]); c.close(1000); return nil }), "closed with 1000, want it to stay up"},
		{"wrong close code", "FRM-006", script{broken: func(c *conn) { c.close(1000) }}, "closed with 1000, want one of [1002]"},
		{"close without a code", "FRM-006", script{broken: func(c *conn) { c.frame(0x88, nil) }}, "closed with a close frame without a code, want one of [1002]"},
		{"illegal close code", "FRM-006", script{broken: func(c *conn) { c.close(1005) }}, "close code 1005, which no frame may carry"},
		{"no close", "FRM-006", script{broken: func(*conn) {}}, "the connection stayed up, want it closed with one of [1002]"},
		{"stray later", "NOT-002", onProbe(func(c *conn, out []string) []string {
			time.AfterFunc(10*time.Millisecond, func() { c.text(`{"jsonrpc":"2.0","method":"stray"}`) })
			return out
		}), "message 1 is not expected"},
		{"wrong order", "ERR-003", but(func(_ *conn, out []string) []string { slices.Reverse(out); return out }), "message 1 is not the one expected there"},
		{"result before the last tick", "ERR-003", but(func(_ *conn, out []string) []string { out[4], out[5] = out[5], out[4]; return out }), "message 5 is not the one expected there"},
		{"forbidden", "ENV-012", send(`{"jsonrpc":"2.0","id":11,"error":{"code":-32600, "message":"m", "data":-32603}}`), `message 1 is forbidden by "-32603"`},
		{"no callback", "CB-001", send(), `send[1] {"capture":"R","method":"ask"} waited in vain`},
		{"callback never ends", "CB-001", script{reply: func(_ *conn, in string, out []string) []string {
			if strings.Contains(in, `"v":42`) {
				return nil
			}
			return out
		}}, `never came: {"jsonrpc":"2.0","id":1,"result":{"v":42}}`},
		{"string twin completes the call", "CB-015", script{reply: func(_ *conn, in string, out []string) []string {
			if strings.Contains(in, `"id":"7"`) {
				return []string{`{"jsonrpc":"2.0","id":1,"result":"wrong"}`}
			}
			return out
		}}, "message 2 is not the one expected there"},
		{"waits in vain", "ID-024", send(), `send[1] {"wait":1} waited in vain`},
		{"probe not answered", "NOT-001", onProbe(func(*conn, []string) []string { return nil }), "the probe was not answered"},
		{"probe answered twice", "NOT-001", onProbe(func(_ *conn, out []string) []string { return append(out, out...) }), "the probe was answered 2 times"},
		{"probe answered wrong", "NOT-001", onProbe(func(*conn, []string) []string { return []string{`{"jsonrpc":"2.0","id":"__probe","result":["x"]}`} }), "the probe was answered with"},
		{"talks without end", "NOT-001", but(func(c *conn, _ []string) []string {
			for range 5000 {
				c.text(`{"jsonrpc":"2.0","method":"stray"}`)
			}
			return nil
		}), "message 1 is not expected"},
		{"wrong accept", "ID-001", script{accept: "x"}, "handshake: wrong Sec-WebSocket-Accept"},
	}
	waits := regexp.MustCompile(`never came|in vain|not answered|stayed up`)
	outcomes := atOnce(len(tests), func(i int) wire.Outcome {
		// A server that is slow, as on a busy machine, has its faults found too.
		r := wire.Runner{URL: tests[i].server.start(t), Offers: []string{"numeric-ids"}, Timeout: time.Minute, Quiet: 3 * time.Second}
		if waits.MatchString(tests[i].want) {
			r.Timeout = 3 * time.Second // these wait for it to pass; the others must not run into it
		}
		return r.Run(t.Context(), named(t, tests[i].id))
	})
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := outcomes[i]
			if out.Pass || !strings.Contains(out.Problem, tt.want) {
				t.Errorf("Run(%s) = pass %v, problem %q, want a problem with %q", tt.id, out.Pass, out.Problem, tt.want)
			}
		})
	}
}

// What a pattern means, shown by the messages that pass and those that do not.
func TestPatterns(t *testing.T) {
	const a, b = `{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","id":2,"result":2}`
	batch := func(elems ...string) string { return "[" + strings.Join(elems, ",") + "]" }
	tests := []struct {
		name, expect string
		replies      []string
		pass         bool
	}{
		{"member order is free", `[{"a":1,"b":2}]`, []string{`{"b":2,"a":1}`}, true},
		{"escapes are read", `[{"a":"é\ud83d\ude00/"}]`, []string{`{"\u0061":"\u00e9\ud83d\ude00\/"}`}, true},
		{"lone surrogates differ", `[{"a":"\ud800"}]`, []string{`{"a":"\ud801"}`}, false},
		{"numbers are text", `[[1,1.0,1e2]]`, []string{`[1,1.0,1e2]`}, true},
		{"numbers are not values", `[[100]]`, []string{`[1e2]`}, false},
		{"anything", `[{"a":"*"}]`, []string{`{"a":[{}]}`}, true},
		{"anything is not nothing", `[{"a":"*"}]`, []string{`{}`}, false},
		{"optional absent", `[{"?a":1}]`, []string{`{}`}, true},
		{"optional present", `[{"?a":1}]`, []string{`{"a":1}`}, true},
		{"optional wrong", `[{"?a":1}]`, []string{`{"a":2}`}, false},
		{"one of", `[{"a":{"$in":[1,2]}}]`, []string{`{"a":2}`}, true},
		{"none of", `[{"a":{"$in":[1,2]}}]`, []string{`{"a":3}`}, false},
		{"length", `[{"a":{"$len":2}}]`, []string{`{"a":[1,1]}`}, true},
		{"other length", `[{"a":{"$len":2}}]`, []string{`{"a":[1]}`}, false},
		{"length of no array", `[{"a":{"$len":2}}]`, []string{`{"a":{"x":1,"y":2}}`}, false},
		{"array order counts", `[{"a":[1,2]}]`, []string{`{"a":[2,1]}`}, false},
		{"batch order is free", `[[` + a + `,` + b + `]]`, []string{batch(b, a)}, true},
		{"batch is one to one", `[[` + a + `,` + b + `]]`, []string{batch(a, a)}, false},
		{"batch inside is no batch", `[{"x":[` + a + `,` + b + `]}]`, []string{`{"x":` + batch(b, a) + `}`}, false},
		{"expression without whitespace", `["^\\{\"a\":\"x y\",\"b\":1\\}$"]`, []string{" {\"a\" : \"x y\",\n\"b\":1}"}, true},
		{"expression", `["\"b\":2"]`, []string{`{"b":1}`}, false},
		{"any order", `[1,2]`, []string{"2", "1"}, true},
		{"strict order", `[1,2],"order":"strict"`, []string{"2", "1"}, false},
		{"exact beside anything", `[{"$in":[1,2]},1]`, []string{"1", "2"}, true},
		{"one to one", `[{"$in":[1,2]},{"$in":[1,2]},3]`, []string{"3", "3", "1"}, false},
		{"deep nesting", `["^\\[+\\]+$"]`, []string{strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)}, true},
		{"hostile nesting", `["^\\[+"]`, []string{strings.Repeat("[", 1<<20)}, false},
	}
	outcomes := atOnce(len(tests), func(i int) wire.Outcome {
		s := script{reply: func(_ *conn, in string, out []string) []string {
			if in == "go" {
				return tests[i].replies
			}
			return out
		}}
		r := wire.Runner{URL: s.start(t), Quiet: 20 * time.Millisecond}
		return r.Run(t.Context(), parsed(t, `"send":["go"],"expect":`+tests[i].expect))
	})
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := outcomes[i]
			if out.Pass != tt.pass || out.Pass != (out.Problem == "") {
				t.Errorf("Run(expect %s) = pass %v, problem %q, want pass %v", tt.expect, out.Pass, out.Problem, tt.pass)
			}
		})
	}
}

func TestAlternative(t *testing.T) {
	s := script{reply: func(_ *conn, in string, out []string) []string {
		if strings.Contains(in, `"id":1.0`) {
			return []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`}
		}
		return out
	}}
	r := wire.Runner{URL: s.start(t)}
	for _, tt := range []struct {
		id   string
		want int
		why  string
	}{
		{"ID-010", 2, "narrowing"},
		{"FRM-013", 1, "the WebSocket layer does not check the reason and echoes the code"}, // reason and all
	} {
		out := r.Run(t.Context(), named(t, tt.id))
		if !out.Pass || out.Alternative != tt.want || out.Why != tt.why {
			t.Errorf("Run(%s) = %+v, want a pass by alternative %d", tt.id, out, tt.want)
		}
	}
}

// A message slower than the probe still belongs to the case when it leads to
// an outcome, also where silence is another outcome.
func TestSlowMessage(t *testing.T) {
	late := func(c *conn, in string, out []string) []string {
		if in == "go" {
			time.AfterFunc(60*time.Millisecond, func() { c.text("1") })
			return nil
		}
		return out
	}
	r := wire.Runner{URL: script{reply: late}.start(t), Quiet: time.Second}
	for _, members := range []string{
		`"send":["go"],"expect":[1]`,
		`"send":["go"],"expect":[1],"alt":[{"expect_none":true,"why":"silence"}]`,
	} {
		if out := r.Run(t.Context(), parsed(t, members)); !out.Pass || out.Alternative != 0 || !slices.Equal(out.Messages, []string{"1"}) {
			t.Errorf("Run(%s) = %+v, want a pass by the first expectation", members, out)
		}
	}
}

func TestNoCloseFrameExpected(t *testing.T) {
	drop := script{reply: func(c *conn, _ string, _ []string) []string { c.nc.Close(); return nil }}
	r := wire.Runner{URL: drop.start(t)}
	if out := r.Run(t.Context(), parsed(t, `"send":["go"],"expect_close":1006`)); !out.Pass {
		t.Errorf("Run(expect_close 1006) = %q, want a pass", out.Problem)
	}
	empty := script{reply: func(c *conn, _ string, _ []string) []string { c.frame(0x88, nil); return nil }}
	r.URL = empty.start(t)
	if out := r.Run(t.Context(), parsed(t, `"send":["go"],"expect_close":[1000,1005]`)); !out.Pass {
		t.Errorf("Run(expect_close 1005) = %q, want a pass", out.Problem)
	}
}

func TestItems(t *testing.T) {
	s := script{reply: func(c *conn, in string, out []string) []string {
		switch in {
		case "whole":
			sizes, _ := json.Marshal(c.parts)
			return []string{string(sizes)}
		case "slow":
			time.AfterFunc(50*time.Millisecond, func() { c.text(`"slow"`) })
			return nil
		case "fast":
			return []string{`"fast"`}
		}
		return out
	}}
	r := wire.Runner{URL: s.start(t)}
	tests := []struct{ name, members string }{
		{"fragments", `"send":[{"fragments":["wh","ole"],"ping_between":true}],"expect":[[2,3]]`},
		{"empty tail", `"send":[{"fragments":["wh","ole"],"empty_tail":true}],"expect":[[2,3,0]]`},
		{"unmasked", `"send":[{"unmasked":"whole"}],"expect_close":1002`},
		{"wait counts no message twice", `"send":["fast",{"wait":1},"slow",{"wait":1},"fast"],"expect":["fast","slow","fast"],"order":"strict"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := r.Run(t.Context(), parsed(t, tt.members))
			if !out.Pass {
				t.Errorf("Run(%s) = %q, want a pass", tt.members, out.Problem)
			}
		})
	}
}

func TestProbeField(t *testing.T) {
	s := script{reply: func(_ *conn, in string, out []string) []string {
		switch in {
		case `{"jsonrpc":"2.0","method":"ping","id":"p"}`:
			return []string{`{"jsonrpc":"2.0","id":"p","result":{}}`}
		case "go":
			return nil
		}
		return []string{"0"}
	}}
	r := wire.Runner{URL: s.start(t), Probe: `{"jsonrpc":"2.0","method":"ping","id":"p"}`}
	c := parsed(t, `"send":["go"],"expect_none":true`)
	if out := r.Run(t.Context(), c); !out.Pass || len(out.Messages) != 0 {
		t.Errorf("Run(own probe) = %+v, want a pass without messages", out)
	}
	r.Probe = `{"method":"ping"}`
	if out := r.Run(t.Context(), c); out.Pass || !strings.Contains(out.Problem, "probe: want a string or a number as id") {
		t.Errorf("Run(probe without id) = %+v, want a problem with the probe", out)
	}
}

func TestSkip(t *testing.T) {
	r := wire.Runner{URL: "ws://127.0.0.1:1/", Offers: []string{"sum", "subtract"}}
	out := r.Run(t.Context(), named(t, "SPEC-014"))
	if !out.Skipped || out.Pass || out.Problem != "" {
		t.Errorf("Run(SPEC-014) = %+v, want it skipped for get_data", out)
	}
}

func TestUnreachable(t *testing.T) {
	refuse := httptest.NewServer(http.NotFoundHandler())
	defer refuse.Close()
	for url, want := range map[string]string{
		"http://127.0.0.1/":                           "want ws:// or wss://",
		"ws" + strings.TrimPrefix(refuse.URL, "http"): "status 404 Not Found, want 101",
		"ws://127.0.0.1:1/":                           "refused",
		"://":                                         "missing protocol scheme",
	} {
		r := wire.Runner{URL: url}
		out := r.Run(t.Context(), named(t, "ID-001"))
		if out.Pass || !strings.HasPrefix(out.Problem, "handshake: ") || !strings.Contains(out.Problem, want) {
			t.Errorf("Run(%s) = %q, want a handshake problem with %q", url, out.Problem, want)
		}
	}
}

func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := script{reply: func(*conn, string, []string) []string { cancel(); return nil }}
	r := wire.Runner{URL: s.start(t)}
	if out := r.Run(ctx, named(t, "ID-001")); out.Pass || !strings.Contains(out.Problem, "stopped: context canceled") {
		t.Errorf("Run(canceled) = %+v, want it stopped", out)
	}
}

package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// What a context carries goes into params._meta, beside what the user has there.
func TestMetaLeaves(t *testing.T) {
	trace := peer.Meta{}
	trace.SetText("traceparent", "00-a-b-01")
	for _, test := range []struct {
		name    string
		opts    peer.Options
		carried []peer.Meta
		params  any
		want    string // what follows the method
		err     error
	}{
		{name: "nothing", params: map[string]int{"a": 1}, want: `,"params":{"a":1}`},
		{name: "object", carried: []peer.Meta{trace}, params: map[string]int{"a": 1}, want: `,"params":{"a":1,"_meta":{"traceparent":"00-a-b-01"}}`},
		{name: "raw", carried: []peer.Meta{trace}, params: json.RawMessage(`{ "a":1.0 }`), want: `,"params":{"a":1.0,"_meta":{"traceparent":"00-a-b-01"}}`},
		{name: "none", carried: []peer.Meta{trace}, want: `,"params":{"_meta":{"traceparent":"00-a-b-01"}}`},
		{name: "null", carried: []peer.Meta{trace}, params: json.RawMessage("null"), want: `,"params":{"_meta":{"traceparent":"00-a-b-01"}}`},
		{name: "array", carried: []peer.Meta{trace}, params: []int{1}, want: `,"params":[1]`},
		{name: "user's own stays", carried: []peer.Meta{trace, {"b": json.RawMessage("2")}},
			params: json.RawMessage(`{"_meta":{"traceparent":"mine","x":1},"z":0}`),
			want:   `,"params":{"z":0,"_meta":{"traceparent":"mine","x":1,"b":2}}`},
		{name: "newest counts", carried: []peer.Meta{{"a": json.RawMessage("1"), "b": json.RawMessage("1")}, {"a": json.RawMessage("2")}}, want: `,"params":{"_meta":{"a":2,"b":1}}`},
		{name: "of the options", opts: peer.Options{Meta: peer.Meta{"v": json.RawMessage("1"), "a": json.RawMessage("0")}}, carried: []peer.Meta{{"a": json.RawMessage("2")}}, want: `,"params":{"_meta":{"a":2,"v":1}}`},
		{name: "top level", opts: peer.Options{TopLevelTrace: true}, carried: []peer.Meta{trace, {"a": json.RawMessage("2")}}, params: []int{1}, want: `,"params":[1],"traceparent":"00-a-b-01"`},
		{name: "top level, no params", opts: peer.Options{TopLevelTrace: true}, carried: []peer.Meta{trace}, want: `,"traceparent":"00-a-b-01"`},
		{name: "no JSON", carried: []peer.Meta{{"a": json.RawMessage("{")}}, err: peer.ErrParams},
		{name: "_meta is no object", carried: []peer.Meta{trace}, params: json.RawMessage(`{"_meta":1}`), err: peer.ErrNoPlace},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &test.opts)
				ctx := t.Context()
				for _, m := range test.carried {
					ctx = peer.WithMeta(ctx, m)
				}
				if err := conn.Notify(ctx, "n", test.params); !errors.Is(err, test.err) {
					t.Fatalf("Notify() = %v, want %v", err, test.err)
				}
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				called := make(chan error, 1)
				go func() { called <- conn.Call(ctx, "c", test.params, nil) }()
				synctest.Wait()
				if test.err != nil {
					if err := <-called; !errors.Is(err, test.err) || len(raw.Waiting()) > 0 {
						t.Errorf("Call() = %v, want %v and nothing sent", err, test.err)
					}
					return
				}
				raw.Want(`{"jsonrpc":"2.0","method":"n"`+test.want+`}`, `{"jsonrpc":"2.0","id":1,"method":"c"`+test.want+`}`)
				items := []peer.BatchItem{{Method: "b", Params: test.params, Notification: true}}
				if err := conn.Batch(ctx, items); err != nil {
					t.Errorf("Batch() = %v", err)
				}
				raw.Want(`[{"jsonrpc":"2.0","method":"b"` + test.want + `}]`)
			})
		})
	}
}

// A handler reads what came, calls and notifications alike; params that are typed do
// not see it.
func TestMetaFrom(t *testing.T) {
	type got struct {
		A    int
		Meta peer.Meta
		OK   bool
		Ctx  context.Context
	}
	for _, test := range []struct {
		name string
		top  bool
		text string // of a call, from params on
		want peer.Meta
	}{
		{"none", false, `"params":{"A":1}`, nil},
		{"some", false, `"params":{"A":1,"_meta":{"x":{"y":[1.0]},"traceparent":"t"}}`, peer.Meta{"x": json.RawMessage(`{"y":[1.0]}`), "traceparent": json.RawMessage(`"t"`)}},
		{"no object", false, `"params":{"A":1,"_meta":7}`, nil},
		{"twice", false, `"params":{"A":1,"b":{"_meta":{"x":1}}}`, nil},
		{"top level is off", false, `"params":{"A":1},"traceparent":"t"`, nil},
		{"top level", true, `"params":{"A":1,"_meta":{"x":1}},"traceparent":"t","tracestate":"s","other":1`,
			peer.Meta{"x": json.RawMessage("1"), "traceparent": json.RawMessage(`"t"`), "tracestate": json.RawMessage(`"s"`)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reg peer.Registry
				seen := make(chan got, 2)
				f := func(ctx context.Context, in struct{ A int }) (int, error) {
					_, ok := peer.RequestFrom(ctx)
					seen <- got{in.A, peer.MetaFrom(ctx), ok, ctx}
					return 1, nil
				}
				peer.Method[struct{ A int }, int]("m").Handle(&reg, f)
				raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, TopLevelTrace: test.top})
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m",`+test.text+`}`, `{"jsonrpc":"2.0","method":"m",`+test.text+`}`)
				raw.Want(result(1, "1"))
				synctest.Wait()
				for range 2 {
					g := <-seen
					if g.A != 1 || !g.OK || !maps.EqualFunc(g.Meta, test.want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
						t.Errorf("handler saw %+v, want %v", g, test.want)
					}
					if _, ok := peer.RequestFrom(g.Ctx); ok || peer.MetaFrom(g.Ctx) != nil {
						t.Error("the request can be seen after its handler returned")
					}
				}
			})
		})
	}
	if _, ok := peer.RequestFrom(t.Context()); ok || peer.MetaFrom(t.Context()) != nil {
		t.Error("a context that is not a handler's has a request")
	}
}

// A handler's context carries nothing of what came with its request out again.
func TestMetaIsNotForwarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, methods{"m": func(ctx context.Context, req *peer.Request) (any, error) {
			return 1, req.Conn.Notify(ctx, "n", nil)
		}}.options())
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"t"}}}`)
		raw.Want(notification("n"), result(1, "1"))
	})
}

func TestMetaText(t *testing.T) {
	m := peer.Meta{"n": json.RawMessage("1")}
	m.SetText("a", "é\n")
	if m.Text("a") != "é\n" || m.Text("n") != "" || m.Text("x") != "" || peer.Meta(nil).Text("a") != "" {
		t.Errorf("Text() = %q, %q, %q", m.Text("a"), m.Text("n"), m.Text("x"))
	}
	if ctx := peer.WithMeta(t.Context(), nil); ctx != t.Context() {
		t.Error("WithMeta without any made a context")
	}
	if keys := slices.Sorted(maps.Keys(m)); strings.Join(keys, " ") != "a n" {
		t.Errorf("keys = %q", keys)
	}
}

// What a handler passes on of its own request asks for nothing in that one's name.
func TestMetaPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"m": func(ctx context.Context, req *peer.Request) (any, error) {
			ctx = peer.WithMeta(ctx, peer.MetaFrom(ctx))
			return 1, errors.Join(req.Conn.Notify(ctx, "n", nil), req.Conn.Call(ctx, "c", nil, nil, peer.OnProgress(func(peer.Progress) {})))
		}}.options()
		raw, _ := peertest.Against(t, opts)
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":"p7","io.github.duetrpc/timeout":1000,"io.github.duetrpc/stream":{},"traceparent":"t"}}}`)
		raw.Want(`{"jsonrpc":"2.0","method":"n","params":{"_meta":{"traceparent":"t"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"c","params":{"_meta":{"progressToken":"p1","traceparent":"t"}}}`)
		raw.Send(result(1, "1"))
		raw.Want(result(1, "1"))
	})
}

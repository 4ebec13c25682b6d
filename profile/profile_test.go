package profile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/profile"
	"github.com/duetrpc/duet/stream"
)

// The names are what flags take; they do not change.
var names = []string{
	"base", "mcp-2024-11-05", "mcp-2025-03-26", "mcp-2025-06-18", "mcp-2025-11-25", "mcp-2026-07-28",
	"lsp-3.17", "acp-v1", "a2a-1.0", "codex",
}

// Those of MCP in which both ends make requests.
var symmetric = names[1:5]

func named(t testing.TB, name string) *peer.Profile {
	t.Helper()
	p, ok := profile.Named(name)
	if !ok {
		t.Fatalf("Named(%q) knows no such profile", name)
	}
	return p
}

// registry holds the methods that conversations use. Results are objects, as
// most profiles want them.
//
//	echo        its params, or {}
//	hold        {} after a second, or the error of its context
//	number      5, which is no object
//	bump        {"n":n}, how often it was called; for calls only
//	note        counts for total; for notifications only
//	total       {"bump":n,"note":n}
func registry() *peer.Registry { return register(&peer.Registry{}) }

func register(reg *peer.Registry) *peer.Registry {
	var bumps, notes atomic.Int64
	reg.Handle("hold", hold())
	reg.Handle("echo", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
		if req.Params == nil {
			return struct{}{}, nil
		}
		return req.Params, nil
	}))
	reg.Handle("number", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return 5, nil }))
	reg.Handle("bump", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
		return map[string]int64{"n": bumps.Add(1)}, nil
	}))
	reg.HandleNotification("note", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
		notes.Add(1)
		return nil, nil
	}))
	reg.Handle("total", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
		return struct {
			Bump int64 `json:"bump"`
			Note int64 `json:"note"`
		}{bumps.Load(), notes.Load()}, nil
	}))
	return reg
}

func hold() peer.Handler {
	return peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
		select {
		case <-time.After(time.Second):
			return struct{}{}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
}

// session has the methods that open and close one, beside the others: initialize,
// which is as hold, ping, shutdown, and the notification exit, which is told by a
// notification exits.
func session() *peer.Registry {
	var reg peer.Registry
	reg.Handle("initialize", hold())
	done := peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return struct{}{}, nil })
	reg.Handle("ping", done)
	reg.Handle("shutdown", done)
	reg.HandleNotification("exit", peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
		return nil, req.Conn.Notify(ctx, "exits", nil)
	}))
	return register(&reg)
}

// The folders of testdata are named after the profiles they speak. Where only the
// dialling end makes calls, the one that is tested was dialled.
func TestConversations(t *testing.T) {
	for _, name := range names {
		for folder, methods := range map[string]func() *peer.Registry{"": registry, "/session": session} {
			t.Run(name+folder, func(t *testing.T) {
				peertest.Conversations(t, "testdata/"+name+folder+"/*.txt", func() *peer.Options {
					p := named(t, name)
					return &peer.Options{Handler: methods(), Profile: p, Accepts: p.OneWay}
				})
			})
		}
	}
	folders, err := os.ReadDir("testdata")
	if err != nil || len(folders) != len(names) {
		t.Errorf("testdata has %d folders (%v), want one for each of %d profiles", len(folders), err, len(names))
	}
}

func TestNames(t *testing.T) {
	if got := profile.Names(); !slices.Equal(got, names) {
		t.Errorf("Names() = %q, want %q", got, names)
	}
	for _, name := range names {
		if p := named(t, name); p.Name != name {
			t.Errorf("Named(%q) is named %q", name, p.Name)
		}
	}
	for _, name := range []string{"", "Base", "mcp", "mcp-2026-07-29", "lsp", "acp-v2", "a2a", "Codex"} {
		if p, ok := profile.Named(name); ok || p != nil {
			t.Errorf("Named(%q) = %v, %v, want none", name, p, ok)
		}
	}
}

// A profile may be changed before it is given to a connection; nobody else sees that.
func TestProfilesAreNew(t *testing.T) {
	for _, name := range names {
		p, q := named(t, name), named(t, name)
		if p == q {
			t.Errorf("Named(%q) is the same value twice", name)
		}
		for _, place := range shared(reflect.ValueOf(*p), reflect.ValueOf(*q), name) {
			t.Errorf("%s is shared between two calls", place)
		}
	}
}

// shared lists what two values of one type have in common, so that a change of one is
// seen in the other.
func shared(v, w reflect.Value, place string) (places []string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			places = append(places, shared(v.Field(i), w.Field(i), place+"."+v.Type().Field(i).Name)...)
		}
	case reflect.Slice:
		// With room behind its end an empty one is shared as well.
		if v.Cap() > 0 && v.UnsafePointer() == w.UnsafePointer() {
			return []string{place}
		}
	case reflect.Map, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.Array:
		panic(place + " is of a kind this test knows nothing of")
	}
	return places
}

// How this end gives up a call of its own: the dialects differ in the name of the
// notification and of its members, and in what cannot be given up.
func TestOwnCancel(t *testing.T) {
	const withReason = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"deadline exceeded"}}`
	for _, tc := range []struct {
		names  []string
		want   string // "" for none
		exempt bool   // initialize
	}{
		{[]string{"base"}, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, false},
		{symmetric, withReason, true},
		{[]string{"mcp-2026-07-28"}, withReason, false},
		{[]string{"lsp-3.17"}, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, true},
		{[]string{"acp-v1"}, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`, true},
		{[]string{"a2a-1.0", "codex"}, "", false},
	} {
		for _, name := range tc.names {
			for _, method := range []string{"hold", "initialize"} {
				t.Run(name+" "+method, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						raw, conn := peertest.Against(t, &peer.Options{Profile: named(t, name)})
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						if err := conn.Call(ctx, method, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("Call() = %v, want the deadline", err)
						}
						raw.Receive() // the call
						synctest.Wait()
						var want []string
						if tc.want != "" && !(tc.exempt && method == "initialize") {
							want = []string{tc.want}
						}
						if got := raw.Waiting(); !slices.Equal(got, want) {
							t.Errorf("sent %q, want %q", got, want)
						}
					})
				})
			}
		}
	}
}

// What an end may send: params and results that are objects, arrays of messages, and
// the jsonrpc member.
func TestOutgoing(t *testing.T) {
	type may struct {
		positional    bool // own params may be an array
		batch         bool
		initInBatch   bool
		arrayAsResult bool // an answer with one settles the call
		noVersion     bool
	}
	for name, may := range map[string]may{
		"base":           {positional: true, batch: true, initInBatch: true, arrayAsResult: true},
		"mcp-2024-11-05": {},
		"mcp-2025-03-26": {batch: true},
		"mcp-2025-06-18": {},
		"mcp-2025-11-25": {},
		"mcp-2026-07-28": {},
		"lsp-3.17":       {positional: true, arrayAsResult: true},
		"acp-v1":         {arrayAsResult: true},
		"a2a-1.0":        {arrayAsResult: true},
		"codex":          {arrayAsResult: true, noVersion: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Profile: named(t, name)})
				err := conn.Notify(t.Context(), "m", []int{1})
				if may.positional != (err == nil) || err != nil && !errors.Is(err, peer.ErrParams) {
					t.Errorf("Notify() with an array = %v, allowed is %v", err, may.positional)
				}
				synctest.Wait()
				raw.Waiting()
				if err := conn.Notify(t.Context(), "m", struct{}{}); err != nil {
					t.Errorf("Notify() with an object = %v, want nil", err)
				}
				version := `"jsonrpc":"2.0",`
				if may.noVersion {
					version = ""
				}
				raw.Want(`{` + version + `"method":"m","params":{}}`)
				items := []peer.BatchItem{{Method: "m", Notification: true}, {Method: "initialize", Notification: true}}
				err = conn.Batch(t.Context(), items)
				if may.batch != (err == nil) || err != nil && !errors.Is(err, peer.ErrNoBatch) {
					t.Errorf("Batch() = %v, allowed is %v", err, may.batch)
				}
				if got := items[1].Err == nil; got != may.initInBatch {
					t.Errorf("initialize in a batch: %v, allowed is %v", items[1].Err, may.initInBatch)
				}
				synctest.Wait()
				raw.Waiting()
				done := make(chan error, 1)
				go func() { done <- conn.Call(t.Context(), "m", nil, new(json.RawMessage)) }()
				raw.Want(`{` + version + `"id":1,"method":"m"}`)
				raw.Send(`{` + version + `"id":1,"result":[1]}`)
				err = <-done
				var broken *peer.ResponseError
				if may.arrayAsResult != (err == nil) || err != nil && !errors.As(err, &broken) {
					t.Errorf("Call() answered with an array = %v, allowed is %v", err, may.arrayAsResult)
				}
			})
		})
	}
}

// Which codes of the reserved range a protocol gives to applications, and which the
// library makes itself: the latter stay out of -32020..-32099, of which MCP keeps all
// for itself (2026-07-28 basic, "Error Codes").
func TestCodes(t *testing.T) {
	type codes struct {
		own                      []codec.Code // of applications
		overloaded, shuttingDown codec.Code   // 0 for the library's
	}
	all := map[string]codes{
		"base":           {},
		"mcp-2024-11-05": {own: []codec.Code{-32002}},
		"mcp-2025-03-26": {own: []codec.Code{-32002}},
		"mcp-2025-06-18": {own: []codec.Code{-32002}},
		"mcp-2025-11-25": {own: []codec.Code{-32002, -32042}},
		"mcp-2026-07-28": {own: []codec.Code{-32020, -32021, -32022}, overloaded: 429, shuttingDown: 503},
		"lsp-3.17":       {own: []codec.Code{-32002, -32001}},
		"acp-v1":         {own: []codec.Code{-32000, -32002}},
		"a2a-1.0":        {own: []codec.Code{-32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32009}, overloaded: 429, shuttingDown: 503},
		"codex":          {own: []codec.Code{-32001}, overloaded: -32001},
	}
	for _, name := range names {
		p, want := named(t, name), all[name]
		if got := (codes{p.Codes, p.Overloaded, p.ShuttingDown}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: codes are %+v, want %+v", name, got, want)
		}
		for _, made := range []codec.Code{
			peer.Cancelled, peer.Overloaded, peer.ShuttingDown,
			p.Cancelled, p.Overloaded, p.ShuttingDown, p.Opening.Code, p.OneWayCode,
		} {
			if -32099 <= made && made <= -32020 {
				t.Errorf("%s: the library makes code %d, which lies in -32099..-32020", name, made)
			}
		}
		if silent := strings.HasPrefix(name, "mcp-"); p.Cancel.Silent != silent {
			t.Errorf("%s: Cancel.Silent = %v, want %v", name, p.Cancel.Silent, silent)
		}
	}
}

// Where only clients make requests, the end that dialled refuses them and the other
// makes none.
func TestOneWay(t *testing.T) {
	refusals := map[string]codec.Code{"mcp-2026-07-28": -32600, "a2a-1.0": -32601}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, dialled := peertest.Against(t, &peer.Options{Handler: registry(), Profile: named(t, name)})
				code, oneWay := refusals[name]
				if oneWay {
					raw.Send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
					raw.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"this end takes no calls"}}`, code))
				}
				raw.Send(`{"jsonrpc":"2.0","method":"note"}`)
				_, accepted := peertest.Against(t, &peer.Options{Profile: named(t, name), Accepts: true})
				for conn, refused := range map[*peer.Conn]bool{dialled: false, accepted: oneWay} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if err := conn.Call(ctx, "m", nil, nil); errors.Is(err, peer.ErrDirection) != refused { // nobody answers
						t.Errorf("Call() = %v, refused should be %v", err, refused)
					}
					cancel()
				}
				if n := dialled.Stats().Events[peer.RefusedNotification]; n != 0 {
					t.Errorf("%d notifications were refused, want none", n)
				}
			})
		})
	}
}

// A server tears a subscription down with the message that gives up a call (MCP
// 2026-07-28 basic/patterns/cancellation).
func TestSubscriptionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Profile: profile.MCP20260728()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- conn.Call(ctx, "subscriptions/listen", nil, nil) }()
		raw.Receive()
		raw.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"restart"}}`)
		var ended *peer.CancelError
		if err := <-done; !errors.As(err, &ended) || ended.Reason != "restart" {
			t.Errorf("Call() = %v, want the reason", err)
		}
	})
}

// The calls of this end are answered whether or not the other end opened the session,
// or closed it: what is gated are requests.
func TestAnswersOutsideSessions(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := named(t, name)
				raw, conn := peertest.Against(t, &peer.Options{Handler: session(), Profile: p})
				call := func(id int) {
					t.Helper()
					done := make(chan error, 1)
					go func() { done <- conn.Call(t.Context(), "m", nil, nil) }()
					raw.Receive()
					raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
					if err := <-done; err != nil {
						t.Errorf("Call() = %v", err)
					}
				}
				call(1)
				for i, method := range []string{p.Opening.Call, p.Opening.Close} {
					if method != "" {
						raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, i, method))
						raw.Receive()
						call(2 + i)
					}
				}
			})
		})
	}
}

// Of several answers with one id, as A2A streams them, the first settles the call, and
// the others are answers to none (JSON-RPC 2.0 section 5).
func TestOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Profile: profile.A2A10()})
		done := make(chan error, 1)
		var result struct{ N int }
		go func() { done <- conn.Call(t.Context(), "SendStreamingMessage", nil, &result) }()
		raw.Receive()
		for n := range 3 {
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"N":%d}}`, n))
		}
		if err := <-done; err != nil || result.N != 0 {
			t.Errorf("Call() = %v with answer %d, want the first", err, result.N)
		}
		synctest.Wait()
		if n := conn.Stats().Events[peer.UnknownResponse]; n != 2 {
			t.Errorf("%d answers to no call, want 2", n)
		}
	})
}

// With a place for items A2A has streams of one answer.
func TestStreamsInA2A(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(o peer.Options) *peer.Options {
			o.Profile = profile.A2A10()
			o.Profile.Progress = peer.ProgressDialect{}
			return &o
		}
		const count = stream.Method[struct{}, int, string]("count")
		var reg peer.Registry
		count.Handle(&reg, func(_ context.Context, _ struct{}, send func(int) error) (string, error) {
			return "counted", errors.Join(send(1), send(2))
		})
		client, _ := peertest.Pair(t, with(peer.Options{}), with(peer.Options{Handler: &reg, Accepts: true}))
		s := count.Call(t.Context(), client, struct{}{})
		var got []int
		for n, err := range s.All() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		if out, err := s.Result(); err != nil || out != "counted" || !slices.Equal(got, []int{1, 2}) {
			t.Errorf("Result() = %q, %v after %v", out, err, got)
		}
	})
}

package profile_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
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
)

// The names are what flags take; they do not change.
var names = []string{"base", "mcp-2024-11-05", "mcp-2025-03-26", "mcp-2025-06-18", "mcp-2025-11-25", "lsp-3.17", "acp-v1"}

// registry holds the methods that conversations use. Results are objects, as
// most profiles want them.
//
//	echo        its params, or {}
//	hold        {} after a second, or the error of its context
//	initialize  as hold
//	number      5, which is no object
//	bump        {"n":n}, how often it was called; for calls only
//	note        counts for total; for notifications only
//	total       {"bump":n,"note":n}
func registry() *peer.Registry {
	var reg peer.Registry
	var bumps, notes atomic.Int64
	hold := peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
		select {
		case <-time.After(time.Second):
			return struct{}{}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	reg.Handle("hold", hold)
	reg.Handle("initialize", hold)
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
	return &reg
}

// The folders of testdata are named after the profiles they speak.
func TestConversations(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			peertest.Conversations(t, "testdata/"+name+"/*.txt", func() *peer.Options {
				p, ok := profile.Named(name)
				if !ok {
					t.Fatalf("Named(%q) knows no such profile", name)
				}
				return &peer.Options{Handler: registry(), Profile: p}
			})
		})
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
		p, ok := profile.Named(name)
		if !ok || p.Name != name {
			t.Errorf("Named(%q) = %v, %v", name, p, ok)
		}
	}
	for _, name := range []string{"", "Base", "mcp", "mcp-2026-07-28", "lsp", "acp-v2"} {
		if p, ok := profile.Named(name); ok || p != nil {
			t.Errorf("Named(%q) = %v, %v, want none", name, p, ok)
		}
	}
}

// A profile may be changed before it is given to a connection; nobody else sees
// that.
func TestProfilesAreNew(t *testing.T) {
	for _, name := range names {
		p, _ := profile.Named(name)
		p.Rules.Depth = 1
		p.Codes = append(p.Codes[:0], 1)
		p.Cancel.Exempt = append(p.Cancel.Exempt[:0], "x")
		p.Rules.NotInBatch = append(p.Rules.NotInBatch[:0], "x")
		q, _ := profile.Named(name)
		if q.Rules.Depth == 1 || slices.Contains(q.Codes, 1) || slices.Contains(q.Cancel.Exempt, "x") || slices.Contains(q.Rules.NotInBatch, "x") {
			t.Errorf("Named(%q) shares values between two calls", name)
		}
	}
}

// How this end gives up a call of its own: the dialects differ in the name of
// the notification and of the member, and in what cannot be given up.
func TestOwnCancel(t *testing.T) {
	for _, tc := range []struct {
		names  []string
		want   string
		exempt bool // initialize
	}{
		{[]string{"base"}, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, false},
		{names[1:5], `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, true},
		{[]string{"lsp-3.17"}, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, true},
		{[]string{"acp-v1"}, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`, true},
	} {
		for _, name := range tc.names {
			for _, method := range []string{"hold", "initialize"} {
				t.Run(name+" "+method, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p, _ := profile.Named(name)
						raw, conn := peertest.Against(t, &peer.Options{Profile: p})
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						if err := conn.Call(ctx, method, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("Call() = %v, want the deadline", err)
						}
						raw.Receive() // the call
						synctest.Wait()
						want := []string{tc.want}
						if method == "initialize" && tc.exempt {
							want = nil
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

// What an end may send: params and results that are objects, arrays of messages.
func TestOutgoing(t *testing.T) {
	for _, tc := range []struct {
		name          string
		positional    bool // own params may be an array
		batch         bool
		initInBatch   bool
		arrayAsResult bool // an answer with one settles the call
	}{
		{name: "base", positional: true, batch: true, initInBatch: true, arrayAsResult: true},
		{name: "mcp-2024-11-05"},
		{name: "mcp-2025-03-26", batch: true},
		{name: "mcp-2025-06-18"},
		{name: "mcp-2025-11-25"},
		{name: "lsp-3.17", positional: true, arrayAsResult: true},
		{name: "acp-v1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := profile.Named(tc.name)
				raw, conn := peertest.Against(t, &peer.Options{Profile: p})
				err := conn.Notify(t.Context(), "m", []int{1})
				if tc.positional != (err == nil) || err != nil && !errors.Is(err, peer.ErrParams) {
					t.Errorf("Notify() with an array = %v, allowed is %v", err, tc.positional)
				}
				if err := conn.Notify(t.Context(), "m", struct{}{}); err != nil {
					t.Errorf("Notify() with an object = %v, want nil", err)
				}
				items := []peer.BatchItem{{Method: "m", Notification: true}, {Method: "initialize", Notification: true}}
				err = conn.Batch(t.Context(), items)
				if tc.batch != (err == nil) || err != nil && !errors.Is(err, peer.ErrNoBatch) {
					t.Errorf("Batch() = %v, allowed is %v", err, tc.batch)
				}
				if got := items[1].Err == nil; got != tc.initInBatch {
					t.Errorf("initialize in a batch: %v, allowed is %v", items[1].Err, tc.initInBatch)
				}
				synctest.Wait()
				raw.Waiting()
				done := make(chan error, 1)
				go func() { done <- conn.Call(t.Context(), "m", nil, new(json.RawMessage)) }()
				synctest.Wait()
				raw.Send(`{"jsonrpc":"2.0","id":1,"result":[1]}`)
				err = <-done
				var broken *peer.ResponseError
				if tc.arrayAsResult != (err == nil) || err != nil && !errors.As(err, &broken) {
					t.Errorf("Call() answered with an array = %v, allowed is %v", err, tc.arrayAsResult)
				}
			})
		})
	}
}

// Codes of the reserved range that a protocol gives to applications are not
// reported; those the library makes by default stay out of -32020..-32099, which
// MCP keeps for itself.
func TestCodes(t *testing.T) {
	for name, codes := range map[string][]codec.Code{
		"base":           nil,
		"mcp-2024-11-05": {-32002},
		"mcp-2025-03-26": {-32002},
		"mcp-2025-06-18": {-32002},
		"mcp-2025-11-25": {-32002, -32042},
		"lsp-3.17":       {-32002, -32001},
		"acp-v1":         {-32000, -32002},
	} {
		p, _ := profile.Named(name)
		if !slices.Equal(p.Codes, codes) {
			t.Errorf("%s: Codes = %v, want %v", name, p.Codes, codes)
		}
		for _, made := range []codec.Code{p.Cancelled, p.Overloaded, p.ShuttingDown} {
			if -32099 <= made && made <= -32020 {
				t.Errorf("%s: the library makes code %d, which lies in -32099..-32020", name, made)
			}
		}
		if silent := strings.HasPrefix(name, "mcp-"); p.Cancel.Silent != silent {
			t.Errorf("%s: Cancel.Silent = %v, want %v", name, p.Cancel.Silent, silent)
		}
	}
}

package profile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/stream"
)

// dialect is how a profile tells of {Done:1,Total:4,Message:"a"} and {Done:2,Total:4},
// and of the item 5 of a stream.
type dialect struct {
	names   []string
	asks    []string // params with the token, own calls having the first; none where there is no progress
	method  string   // of the notifications
	told    []string // their params
	arrives []peer.Progress
	streams []string // params with the token of a stream
	item    string   // the params of its notification
}

// Params of calls. TOKEN stands for the token.
const (
	inMeta    = `{"_meta":{"progressToken":TOKEN}}`
	offered   = `{"_meta":{"progressToken":TOKEN,"io.github.duetrpc/stream":{}}}`
	workDone  = `{"workDoneToken":TOKEN}`
	partial   = `{"partialResultToken":TOKEN}`
	elsewhere = `{"progressToken":TOKEN,"_meta":{"workDoneToken":TOKEN,"partialResultToken":TOKEN}}`
)

var allParams = []string{inMeta, offered, workDone, partial, elsewhere}

var dialects = []dialect{{
	names:   []string{"base"},
	asks:    []string{inMeta, offered, workDone},
	method:  "$/progress",
	told:    []string{`{"token":TOKEN,"value":{"progress":1,"total":4,"message":"a"}}`, `{"token":TOKEN,"value":{"progress":2,"total":4}}`},
	arrives: []peer.Progress{{Done: 1, Total: 4, Message: "a"}, {Done: 2, Total: 4}},
	streams: []string{inMeta, offered, partial, workDone},
	item:    `{"token":TOKEN,"value":5}`,
}, {
	names:   append(slices.Clone(symmetric), "mcp-2026-07-28"),
	asks:    []string{inMeta, offered},
	method:  "notifications/progress",
	told:    []string{`{"progressToken":TOKEN,"progress":1,"total":4,"message":"a"}`, `{"progressToken":TOKEN,"progress":2,"total":4}`},
	arrives: []peer.Progress{{Done: 1, Total: 4, Message: "a"}, {Done: 2, Total: 4}},
	streams: []string{offered}, // the token alone asks for progress
	item:    `{"progressToken":TOKEN,"progress":1,"_meta":{"io.github.duetrpc/stream":5}}`,
}, {
	names:  []string{"lsp-3.17"},
	asks:   []string{workDone},
	method: "$/progress",
	told: []string{
		`{"token":TOKEN,"value":{"kind":"begin","title":"work","percentage":0}}`,
		`{"token":TOKEN,"value":{"kind":"report","percentage":25,"message":"a"}}`,
		`{"token":TOKEN,"value":{"kind":"report","percentage":50}}`,
		`{"token":TOKEN,"value":{"kind":"end"}}`,
	},
	arrives: []peer.Progress{{Done: 25, Total: 100, Message: "a"}, {Done: 50, Total: 100}},
	streams: []string{partial},
	item:    `{"token":TOKEN,"value":5}`,
}, {
	names: []string{"acp-v1", "a2a-1.0", "codex"},
}}

// eachDialect runs f for every profile, in a bubble. envelope writes what begins with
// head, has those params, and is a message of the profile.
func eachDialect(t *testing.T, f func(t *testing.T, d *dialect, p *peer.Profile, envelope func(head, params string) string)) {
	var seen []string
	for _, d := range dialects {
		seen = append(seen, d.names...)
		for _, name := range d.names {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := named(t, name)
					f(t, &d, p, func(head, params string) string {
						if !p.Rules.NoVersion {
							head = `"jsonrpc":"2.0",` + head
						}
						return `{` + head + params + `}`
					})
				})
			})
		}
	}
	if slices.Sort(seen); !slices.Equal(seen, slices.Sorted(slices.Values(names))) {
		t.Errorf("dialects are those of %q, want one for each of %q", seen, names)
	}
}

// A handler's progress leaves as the profile has it, for a token at any of its places
// and at no other.
func TestProgress(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *dialect, p *peer.Profile, envelope func(head, params string) string) {
		var reg peer.Registry
		reg.Handle("work", peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
			reporter, ok := peer.ProgressFrom(ctx)
			if ok {
				if err := errors.Join(
					reporter.Report(peer.Progress{Done: 1, Total: 4, Message: "a"}),
					reporter.Report(peer.Progress{Done: 2, Total: 4}),
				); err != nil {
					t.Errorf("Report() = %v", err)
				}
			}
			return map[string]bool{"asked": ok}, nil
		}))
		p.RequiredMeta = nil // params are nothing but the token
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, Profile: p, Accepts: p.OneWay})
		for _, ask := range allParams {
			for _, token := range []string{`"t"`, `7`, `"\u0074"`} {
				with := func(text string) string { return strings.ReplaceAll(text, "TOKEN", token) }
				asked := slices.Contains(d.asks, ask)
				raw.Send(envelope(`"id":1,"method":"work","params":`, with(ask)))
				if asked {
					for _, params := range d.told {
						raw.Want(envelope(`"method":"`+d.method+`","params":`, with(params)))
					}
				}
				raw.Want(envelope(`"id":1,"result":`, fmt.Sprintf(`{"asked":%v}`, asked)))
			}
		}
	})
}

// A call of this end asks for progress as the profile has it, and takes it; where there
// is none it fails and nothing is sent.
func TestOnProgress(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *dialect, p *peer.Profile, envelope func(head, params string) string) {
		raw, conn := peertest.Against(t, &peer.Options{Profile: p})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var arrived []peer.Progress
		done := make(chan error, 1)
		go func() {
			done <- conn.Call(ctx, "work", nil, nil, peer.OnProgress(func(u peer.Progress) { arrived = append(arrived, u) }))
		}()
		if d.asks == nil {
			if err := <-done; !errors.Is(err, peer.ErrNoPlace) {
				t.Errorf("Call() = %v, want ErrNoPlace", err)
			}
			synctest.Wait()
			if sent := raw.Waiting(); sent != nil {
				t.Errorf("sent %q", sent)
			}
			return
		}
		with := func(text string) string { return strings.ReplaceAll(text, "TOKEN", `"p1"`) }
		raw.Want(envelope(`"id":1,"method":"work","params":`, with(d.asks[0])))
		for _, params := range d.told {
			raw.Send(envelope(`"method":"`+d.method+`","params":`, with(params)))
		}
		raw.Send(envelope(`"id":1,"result":`, `{}`))
		if err := <-done; err != nil || !slices.Equal(arrived, d.arrives) {
			t.Errorf("Call() = %v with progress %v, want %v", err, arrived, d.arrives)
		}
	})
}

// The items of a handler leave as the profile has it, for a token at any of their places
// and at no other.
func TestItems(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *dialect, p *peer.Profile, envelope func(head, params string) string) {
		var reg peer.Registry
		stream.Method[struct{}, int, struct{}]("count").Handle(&reg, func(_ context.Context, _ struct{}, send func(int) error) (struct{}, error) {
			return struct{}{}, send(5)
		})
		p.RequiredMeta = nil // params are nothing but the token
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, Profile: p, Accepts: p.OneWay})
		for _, ask := range allParams {
			with := func(text string) string { return strings.ReplaceAll(text, "TOKEN", `"t"`) }
			raw.Send(envelope(`"id":1,"method":"count","params":`, with(ask)))
			if slices.Contains(d.streams, ask) {
				raw.Want(
					envelope(`"method":"`+d.method+`","params":`, with(d.item)),
					envelope(`"id":1,"result":`, `{}`))
			} else {
				why := "no token for the items of the stream"
				if p.Progress.Off {
					why = "the protocol has no place for the items of a stream"
				}
				raw.Want(envelope(`"id":1,"error":`, `{"code":-32602,"message":"invalid params: `+why+`"}`))
			}
		}
	})
}

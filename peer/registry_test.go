package peer_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

// panicText is what f panics with, "" if it does not.
func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// A mistake in a registration panics and says what was wrong.
func TestRegistrationPanics(t *testing.T) {
	type embedding struct {
		sleepParams
		Other int
	}
	add := func(context.Context, pair) (int, error) { return 0, nil }
	for _, tc := range []struct {
		name string
		f    func(r *peer.Registry)
		want []string // parts of the text
	}{
		{"call twice", func(r *peer.Registry) { r.Handle("old", gateOpen) }, []string{`"old"`, "twice"}},
		{"typed twice", func(r *peer.Registry) { peer.Method[pair, int]("old").Handle(r, add) }, []string{`"old"`, "twice"}},
		{"notification twice", func(r *peer.Registry) { r.HandleNotification("note", gateOpen) }, []string{`"note"`, "twice"}},
		{"reserved", func(r *peer.Registry) { r.Handle("rpc.x", gateOpen) }, []string{`"rpc.x"`, "reserved"}},
		{"reserved notification", func(r *peer.Registry) { r.HandleNotification("rpc.x", gateOpen) }, []string{`"rpc.x"`, "reserved"}},
		{"reserved typed", func(r *peer.Registry) { peer.Method[pair, int]("rpc.x").Handle(r, add) }, []string{`"rpc.x"`, "reserved"}},
		{"extension without rpc.", func(r *peer.Registry) { r.HandleExtension("x", gateOpen) }, []string{`"x"`, "rpc."}},
		{"extension twice", func(r *peer.Registry) { r.HandleExtension("rpc.old", gateOpen) }, []string{`"rpc.old"`, "twice"}},
		{"empty name", func(r *peer.Registry) { r.Handle("", gateOpen) }, []string{"name"}},
		{"empty notification", func(r *peer.Registry) { r.HandleNotification("", gateOpen) }, []string{"name"}},
		{"nil handler", func(r *peer.Registry) { r.Handle("x", nil) }, []string{`"x"`, "nil"}},
		{"nil notification handler", func(r *peer.Registry) { r.HandleNotification("x", nil) }, []string{`"x"`, "nil"}},
		{"nil typed", func(r *peer.Registry) { peer.Method[pair, int]("x").Handle(r, nil) }, []string{`"x"`, "nil"}},
		{"nil typed notification", func(r *peer.Registry) { peer.Notification[pair]("x").Handle(r, nil) }, []string{`"x"`, "nil"}},
		{"positional embedding", func(r *peer.Registry) {
			peer.Method[embedding, int]("x").Handle(r, func(context.Context, embedding) (int, error) { return 0, nil }, peer.Positional())
		}, []string{`"x"`, "embed"}},
		{"positional no struct", func(r *peer.Registry) {
			peer.Method[map[string]int, int]("x").Handle(r, func(context.Context, map[string]int) (int, error) { return 0, nil }, peer.Positional())
		}, []string{`"x"`, "struct"}},
		{"served", func(r *peer.Registry) {
			peertest.Pair(t, &peer.Options{Handler: r}, nil)
			r.Handle("x", gateOpen)
		}, []string{`"x"`, "given to a server"}},
		{"served through a Chain", func(r *peer.Registry) {
			peer.NewServer(&peer.Options{Handler: peer.Chain(r)})
			r.Handle("x", gateOpen)
		}, []string{`"x"`, "given to a server"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var reg peer.Registry
			reg.Handle("old", gateOpen)
			reg.HandleNotification("note", gateOpen)
			reg.HandleExtension("rpc.old", gateOpen)
			got := panicText(func() { tc.f(&reg) })
			for _, part := range append(tc.want, "peer: ") {
				if !strings.Contains(got, part) {
					t.Errorf("panic %q, want one with %q", got, part)
				}
			}
		})
	}
}

// Names are exact: neither case nor anything else is folded.
func TestRegistryExactNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		for _, name := range []string{"a.b", "A.b", "ä", "with \"quotes\""} {
			reg.Handle(name, peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return name, nil }))
		}
		reg.HandleExtension("rpc.discover", gateOpen)
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		for _, tc := range []struct{ method, want string }{
			{`"a.b"`, `"result":"a.b"`},
			{`"A.b"`, `"result":"A.b"`},
			{`"\u0061.b"`, `"result":"a.b"`}, // the same name, written otherwise
			{`"\u00e4"`, `"result":"ä"`},
			{`"with \"quotes\""`, `"result":"with \"quotes\""`},
			{`"rpc.discover"`, `"result":null`},
			{`"A.B"`, `"code":-32601`},
			{`"a.b "`, `"code":-32601`},
			{`"a.b\u0000"`, `"code":-32601`},
			{`""`, `"code":-32601`},
			{`"rpc.x"`, `"code":-32601`},
		} {
			raw.Send(`{"jsonrpc":"2.0","id":1,"method":` + tc.method + `}`)
			if got := raw.Receive(); !strings.Contains(got, tc.want) {
				t.Errorf("method %s is answered with %s, want %s", tc.method, got, tc.want)
			}
		}
	})
}

func TestRegistryMethods(t *testing.T) {
	var reg peer.Registry
	reg.HandleNotification("z", gateOpen)
	peer.Method[pair, int]("add").Handle(&reg, func(context.Context, pair) (int, error) { return 0, nil }, peer.Doc("Adds."))
	reg.Handle("z", gateOpen)
	reg.HandleExtension("rpc.discover", gateOpen)
	peer.Notification[pair]("note").Handle(&reg, func(context.Context, pair) error { return nil })
	want := []peer.MethodInfo{
		{Name: "add", Doc: "Adds.", Params: reflect.TypeFor[pair](), Result: reflect.TypeFor[int]()},
		{Name: "note", Notification: true, Params: reflect.TypeFor[pair]()},
		{Name: "rpc.discover"},
		{Name: "z"},
		{Name: "z", Notification: true},
	}
	if got := reg.Methods(); !slices.Equal(got, want) {
		t.Errorf("Methods() = %+v, want %+v", got, want)
	}
	var empty peer.Registry
	if got := empty.Methods(); got == nil || len(got) != 0 {
		t.Errorf("Methods() of an empty registry = %v, want an empty list", got)
	}
}

// A call and a notification of one name are two registrations.
func TestRegistryCallAndNotification(t *testing.T) {
	for _, tc := range []struct {
		name  string
		named bool
		want  string // who runs for: notification both, call only, note only
	}{
		{"base", false, "both:note call:call note:note"},
		{"NamedNotifications", true, "both:note note:note"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran []string
				handler := func(kind string) peer.Handler {
					return peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
						ran = append(ran, req.Method+":"+kind) // notifications run one at a time
						if !req.IsNotification() || !req.ID.IsZero() {
							t.Errorf("%s is no notification", req.Method)
						}
						return nil, nil
					})
				}
				var reg peer.Registry
				reg.Handle("both", handler("call"))
				reg.HandleNotification("both", handler("note"))
				reg.Handle("call", handler("call"))
				reg.HandleNotification("note", handler("note"))
				raw, conn := peertest.Against(t, &peer.Options{
					Handler: &reg, Profile: &peer.Profile{NamedNotifications: tc.named},
				})
				for _, m := range []string{"both", "call", "note"} {
					raw.Send(`{"jsonrpc":"2.0","method":"` + m + `"}`)
				}
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"note"}`) // not registered for calls
				raw.Want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`)
				if got := strings.Join(ran, " "); got != tc.want {
					t.Errorf("ran %s, want %s", got, tc.want)
				}
				synctest.Wait()
				refused := uint64(0)
				if tc.named {
					refused = 1
				}
				if got := conn.Stats().Events[peer.RefusedNotification]; got != refused {
					t.Errorf("Stats() counts %d refused notifications, want %d", got, refused)
				}
			})
		})
	}
}

// Options given for the call of a name say nothing about its notification.
func TestRegistryOptionsOfOne(t *testing.T) {
	var reg peer.Registry
	peer.Method[pair, int]("x").Handle(&reg, func(context.Context, pair) (int, error) { return 0, nil }, peer.Positional())
	if got := panicText(func() {
		peer.Notification[[]int]("x").Handle(&reg, func(context.Context, []int) error { return nil })
	}); got != "" {
		t.Errorf("panic %q, want none", got)
	}
	if got := reg.Methods()[0].Params; got != reflect.TypeFor[pair]() {
		t.Errorf("Methods()[0].Params = %v, want that of the call", got)
	}
}

// Middleware sees everything that would reach a handler, the first outermost;
// methods are counted by name all the same.
func TestChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		note := func(name string) peer.Middleware {
			return func(next peer.Handler) peer.Handler {
				return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
					seen = append(seen, name+">"+req.Method)
					res, err := next.ServeRPC(ctx, req)
					seen = append(seen, name+"<")
					return res, err
				})
			}
		}
		denied := errors.New("denied")
		deny := func(next peer.Handler) peer.Handler {
			return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
				if strings.Contains(string(req.Params), "deny") {
					return nil, denied
				}
				return next.ServeRPC(ctx, req)
			})
		}
		ran := 0
		var reg peer.Registry
		reg.Handle("m", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { ran++; return 1, nil }))
		raw, conn := peertest.Against(t, &peer.Options{Handler: peer.Chain(&reg, note("a"), note("b"), deny)})
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		raw.Want(`{"jsonrpc":"2.0","id":1,"result":1}`)
		raw.Send(`{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","method":"made.up"}`)
		raw.Send(`{"jsonrpc":"2.0","method":"m","params":["deny"]}`) // each gate of a call is one of a notification
		raw.Send(`{"jsonrpc":"2.0","id":2,"method":"made.up"}`)
		raw.Want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found"}}`)
		synctest.Wait()
		want := "a>m b>m b< a< a>m b>m b< a< a>made.up b>made.up b< a< a>m b>m b< a< a>made.up b>made.up b< a<"
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("seen %s\nwant %s", got, want)
		}
		if ran != 2 {
			t.Errorf("the handler ran %d times, want 2", ran)
		}
		stats := conn.Stats().Methods
		if got, want := stats["m"], (peer.MethodStats{Calls: 1, Notifications: 2, Errors: 1}); got != want {
			t.Errorf("Stats().Methods[m] = %+v, want %+v", got, want)
		}
		if got, want := stats["_OTHER"], (peer.MethodStats{Calls: 1, Notifications: 1, Errors: 2}); got != want {
			t.Errorf("Stats().Methods[_OTHER] = %+v, want %+v", got, want)
		}
	})
}

// Without a handler every call is refused and every notification dropped.
func TestNilHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, nil)
		raw.Send(`{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","id":1,"method":"m"}`)
		raw.Want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`)
	})
}

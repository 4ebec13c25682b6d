package peer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

type (
	valueMarshaler   struct{ A, B int }
	pointerMarshaler struct{ A, B int }
	textKeyed        map[netip.Addr]int
	wireTree         struct {
		At    time.Time          `json:"at"`
		Omit  *int               `json:"omit,omitempty"`
		Zero  int                `json:"zero,omitzero"`
		Raw   json.RawMessage    `json:"raw"`
		Value valueMarshaler     `json:"value"`
		Ptr   pointerMarshaler   `json:"ptr"`
		Ptrs  []pointerMarshaler `json:"ptrs"`
		Any   any                `json:"any"`
		Text  string             `json:"text"`
		Nil   []int              `json:"nil"`
	}
	wireEmbeds struct {
		wireTree
		Extra string
	}
)

func (v valueMarshaler) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d]", v.A, v.B), nil
}
func (v *pointerMarshaler) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"p":[%d , %d]}`, v.A, v.B), nil
}

func treeOf() wireTree {
	return wireTree{
		At: time.Unix(1e9, 0).UTC(), Raw: json.RawMessage(`{ "x" : 1.50 , "y":"\u0041" }`),
		Value: valueMarshaler{1, 2}, Ptr: pointerMarshaler{3, 4}, Ptrs: []pointerMarshaler{{5, 6}},
		Any: pointerMarshaler{7, 8}, Text: "<é\u2028\"\x00>",
	}
}

// sentBy returns the messages that do makes a connection with opts send, each
// answered with null.
func sentBy(t *testing.T, opts *peer.Options, do func(c *peer.Conn) error) string {
	t.Helper()
	raw, conn := peertest.Against(t, opts)
	failed := make(chan error, 1)
	go func() { failed <- do(conn) }()
	msg := raw.Receive()
	raw.Send(result(1, "null"))
	<-failed // a result of null fits some and not others
	return msg
}

// sameWire holds that value looks the same on the wire in whatever way it is
// sent: as params, of a notification too, and as a result.
func sameWire[V any](name string, value V, want string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		scalar := reflect.TypeFor[V]().Kind() == reflect.String
		plain := func() *peer.Options { return &peer.Options{} }
		outer := func() *peer.Options { return &peer.Options{Outgoing: []func(peer.Caller) peer.Caller{wrapped}} }
		method, event := peer.Method[V, any]("m"), peer.Notification[V]("m")
		calls := map[string]string{}
		if !scalar {
			for how, opts := range map[string]func() *peer.Options{"": plain, " with Outgoing": outer} {
				calls["Conn.Call"+how] = sentBy(t, opts(), func(c *peer.Conn) error { return c.Call(t.Context(), "m", value, nil) })
				calls["Method.Call"+how] = sentBy(t, opts(), func(c *peer.Conn) error { _, err := method.Call(t.Context(), c, value); return err })
			}
		}
		params := `,"params":` + want
		if want == "null" {
			params = ""
		}
		for how, got := range calls {
			if text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"m"%s}`, params); got != text {
				t.Errorf("%s: %s sends\n  %s, want\n  %s", name, how, got, text)
			}
		}
		if !scalar {
			got := sentBy(t, nil, func(c *peer.Conn) error { return event.Notify(t.Context(), c, value) })
			if text := fmt.Sprintf(`{"jsonrpc":"2.0","method":"m"%s}`, params); got != text {
				t.Errorf("%s: Notify sends\n  %s, want\n  %s", name, got, text)
			}
		}

		typed := &peer.Registry{}
		peer.Method[struct{}, V]("m").Handle(typed, func(context.Context, struct{}) (V, error) { return value, nil })
		var seen any
		looking := func(h peer.Handler) peer.Handler {
			return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
				result, err := h.ServeRPC(ctx, req)
				seen = result
				return result, err
			})
		}
		for how, h := range map[string]peer.Handler{
			"a typed handler": typed, "a typed handler in a Chain": peer.Chain(typed, looking),
			"an untyped handler": answers(value),
		} {
			raw, _ := peertest.Against(t, &peer.Options{Handler: h})
			raw.Send(call(7, "m"))
			if got, text := raw.Receive(), result(7, want); got != text {
				t.Errorf("%s: %s answers\n  %s, want\n  %s", name, how, got, text)
			}
		}
		if !reflect.DeepEqual(seen, any(value)) || reflect.TypeOf(seen) != reflect.TypeOf(any(value)) {
			t.Errorf("%s: a middleware sees %T(%v), want %T(%v)", name, seen, seen, value, value)
		}
	}
}

func TestWireForm(t *testing.T) {
	const (
		inner = `"at":"2001-09-09T01:46:40Z","raw":{"x":1.50,"y":"\u0041"},"value":[1,2],"ptr":{"p":[3,4]},"ptrs":[{"p":[5,6]}],"any":{"p":[7,8]},"text":"<é` + "\u2028" + `\"\u0000>","nil":[]`
		tree  = `{` + inner + `}`
	)
	one := treeOf()
	for _, check := range []func(*testing.T){
		sameWire("struct", treeOf(), tree),
		sameWire("pointer", &one, tree),
		sameWire("nil pointer", (*wireTree)(nil), "null"),
		sameWire("embedded", wireEmbeds{treeOf(), "x"}, `{`+inner+`,"Extra":"x"}`),
		sameWire("empty struct", struct{}{}, `{}`),
		sameWire("map", map[string]int{"a": 1}, `{"a":1}`),
		sameWire("nil map", map[string]int(nil), `{}`),
		sameWire("map with text keys", textKeyed{netip.MustParseAddr("::1"): 1}, `{"::1":1}`),
		sameWire("slice", []any{1, nil, "x"}, `[1,null,"x"]`),
		sameWire("nil slice", []int(nil), `[]`),
		sameWire("array", [2]bool{true}, `[true,false]`),
		sameWire("RawMessage", json.RawMessage(`{ "a" : 1.0e0 , "b":"\u0041" }`), `{ "a" : 1.0e0 , "b":"\u0041" }`),
		sameWire("nil RawMessage", json.RawMessage(nil), "null"),
		sameWire("RawMessage in any", any(json.RawMessage(`[ 1 ]`)), `[ 1 ]`),
		sameWire("struct in any", any(treeOf()), tree),
		sameWire("nil any", any(nil), "null"),
		sameWire("MarshalJSON", valueMarshaler{1, 2}, `[1,2]`),
		sameWire("MarshalJSON of the pointer", pointerMarshaler{1, 2}, `{"p":[1,2]}`),
		sameWire("bytes as a result", struct{ B []byte }{[]byte("hi")}, `{"B":"aGk="}`),
		sameWire("text as a result", "text", `"text"`),
	} {
		check(t)
	}
}

// A RawMessage behind a pointer was written anew by a typed contract, and to the
// byte otherwise.
func TestWireFormOfRawPointer(t *testing.T) {
	raw := json.RawMessage(`{ "a" : 1 }`)
	sameWire("pointer to RawMessage", &raw, string(raw))(t)
}

// typesSeen is a JSON of the user's that writes down what it is given.
type typesSeen struct {
	peer.JSONv2
	seen chan reflect.Type
}

func (j typesSeen) Marshal(dst []byte, v any) ([]byte, error) {
	j.seen <- reflect.TypeOf(v)
	return j.JSONv2.Marshal(dst, v)
}

// TestCustomJSONGetsValues: a JSON of the user's is given values as they are, for
// it may tell a P from a *P.
func TestCustomJSONGetsValues(t *testing.T) {
	j := typesSeen{seen: make(chan reflect.Type, 8)}
	r := &peer.Registry{}
	m, n := peer.Method[valueMarshaler, pointerMarshaler]("m"), peer.Notification[valueMarshaler]("n")
	m.Handle(r, func(context.Context, valueMarshaler) (p pointerMarshaler, err error) { return }, peer.OptionalParams())
	// The result is of a form that does not decode, which does not matter here.
	conn, _ := peertest.Pair(t, &peer.Options{JSON: j}, &peer.Options{JSON: j, Handler: r})
	_, _ = m.Call(t.Context(), conn, valueMarshaler{})
	if got := <-j.seen; got != reflect.TypeFor[valueMarshaler]() {
		t.Errorf("Marshal of params is given a %v, want the value", got)
	}
	if err := n.Notify(t.Context(), conn, valueMarshaler{}); err != nil {
		t.Errorf("Notify = %v", err)
	}
	if got := <-j.seen; got != reflect.TypeFor[valueMarshaler]() {
		t.Errorf("Marshal of a notification is given a %v, want the value", got)
	}
	raw, _ := peertest.Against(t, &peer.Options{JSON: j, Handler: r})
	raw.Send(call(7, "m"))
	raw.Want(result(7, `{"p":[0,0]}`))
	if got := <-j.seen; got != reflect.TypeFor[pointerMarshaler]() {
		t.Errorf("Marshal of a result is given a %v, want the value", got)
	}
}

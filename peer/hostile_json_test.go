package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
)

// nest is a typed value as deep as it has nodes.
type nest struct {
	Next *nest `json:"next,omitzero"`
}

func nested(levels int) (n *nest) {
	for range levels {
		n = &nest{n}
	}
	return n
}

func brackets(levels int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

// A value deeper than the other end reads left all the same; it was refused
// there with id null, and nobody was answered. An envelope adds up to three
// levels of its own, and the limit is 1,000.
func TestDepth(t *testing.T) {
	for _, tc := range []struct {
		name string
		json peer.JSON
		deep func(levels int) any
	}{
		{"raw", nil, func(n int) any { return brackets(n) }},
		{"typed", nil, func(n int) any { return nested(n) }},
		{"typed, long", nil, func(n int) any {
			return struct {
				Pad  string
				Deep any
			}{strings.Repeat("x", 16<<10), nested(n - 1)}
		}},
		{"typed v1", peer.JSONv1{}, func(n int) any { return nested(n) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := methods{"m": answers(1), "fits": answers(tc.deep(997)), "deep": answers(tc.deep(998))}.options()
				opts.JSON = tc.json
				left, right := peertest.Pair(t, &peer.Options{JSON: tc.json}, opts)
				if err := left.Call(t.Context(), "m", tc.deep(997), nil); err != nil {
					t.Errorf("Call() with 997 levels = %v, want nil", err)
				}
				wantSent(t, left.Call(t.Context(), "m", tc.deep(998), nil), pending.NotSent)
				if err := left.Notify(t.Context(), "m", tc.deep(998)); err == nil {
					t.Error("Notify() with 998 levels = nil, want an error")
				}
				synctest.Wait()
				if n := right.Stats().ReceivedMessages; n != 1 || left.Stats().Pending != 0 {
					t.Errorf("%d messages left, Pending = %d, want 1 and 0", n, left.Stats().Pending)
				}
				wantCode(t, "result of 998 levels", left.Call(t.Context(), "deep", nil, nil), peer.InternalError)
				items := []peer.BatchItem{{Method: "fits"}, {Method: "deep"}, {Method: "m", Params: tc.deep(997)}}
				if err := errors.Join(left.Batch(t.Context(), items), items[0].Err, items[2].Err); err != nil {
					t.Errorf("Batch() with 997 levels = %v, want nil", err)
				}
				wantCode(t, "result of 998 levels in a batch", items[1].Err, peer.InternalError)
			})
		})
	}
}

// wantCode fails t unless err is the error of the other end with code.
func wantCode(t *testing.T, what string, err error, code peer.Code) {
	t.Helper()
	if !errors.Is(err, &peer.Error{Code: code}) {
		t.Errorf("%s: %v, want code %d", what, err, code)
	}
}

// The same fault with the data of an error.
func TestDepthOfErrorData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(levels int) peer.HandlerFunc {
			return func(context.Context, *peer.Request) (any, error) {
				return nil, &peer.Error{Code: 1, Message: "m", Data: brackets(levels)}
			}
		}
		left, _ := peertest.Pair(t, nil, methods{"fits": fails(997), "deep": fails(998)}.options())
		wantCode(t, "997 levels", left.Call(t.Context(), "fits", nil, nil), 1)
		wantCode(t, "998 levels", left.Call(t.Context(), "deep", nil, nil), peer.InternalError)
		items := []peer.BatchItem{{Method: "fits"}} // all three levels around it
		if err := left.Batch(t.Context(), items); err != nil {
			t.Error(err)
		}
		wantCode(t, "997 levels in a batch", items[0].Err, 1)
	})
}

// withRaw is a typed value that holds JSON as it is.
type withRaw struct {
	X json.RawMessage `json:"x"`
}

// A raw member with bytes that are no UTF-8 left, and ended the connection at
// the other end with 1007.
func TestRawMemberNoUTF8(t *testing.T) {
	bad := withRaw{json.RawMessage("\"\xff\"")}
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"m": answers(bad)}.options()
		opts.JSON = peer.JSONv1{}
		raw, conn := peertest.Against(t, opts)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantSent(t, conn.Call(ctx, "x", bad, nil), pending.NotSent)
		raw.Send(call(7, "m"))
		raw.Want(failure(7, -32603, "internal error")) // nothing came before it
	})
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, methods{"m": answers(bad)}.options())
		if err := conn.Notify(t.Context(), "x", bad); err != nil {
			t.Errorf("Notify() = %v, want nil", err)
		}
		raw.Want(`{"jsonrpc":"2.0","method":"x","params":{"x":"` + "\uFFFD" + `"}}`)
		raw.Send(call(7, "m"))
		raw.Want(result(7, `{"x":"`+"\uFFFD"+`"}`))
	})
}

// lenient writes its own JSON, and lets through what is not UTF-8.
type lenient struct{ raw json.RawMessage }

func (l lenient) MarshalJSONTo(e *jsontext.Encoder) error {
	return jsonv2.MarshalEncode(e, l.raw, jsontext.AllowInvalidUTF8(true))
}

// A type that writes its own JSON could write bytes that are no UTF-8, for which
// the other end has to end the connection. It fails where it is sent, wherever in a
// value it stands.
func TestOwnWriterNoUTF8(t *testing.T) {
	bad := lenient{json.RawMessage("{\"a\":\"\xff\"}")}
	for name, v := range map[string]any{
		"whole": bad, "member": struct{ V lenient }{bad}, "any": map[string]any{"v": bad}, "pointer": &bad,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, methods{"m": answers(v), "now": answers(1)}.options())
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				wantSent(t, conn.Call(ctx, "x", v, nil), pending.NotSent)
				raw.Send(call(7, "m"), call(8, "now"))
				got := []string{raw.Receive(), raw.Receive()}
				slices.Sort(got)
				if want := []string{failure(7, -32603, "internal error"), result(8, "1")}; !slices.Equal(got, want) {
					t.Errorf("received %q, want %q", got, want)
				}
			})
		})
	}
}

// Names of a raw member that differ only in bytes that are no UTF-8 became the same,
// which the other end refuses.
func TestRawNamesNoUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		if err := conn.Notify(t.Context(), "x", withRaw{json.RawMessage("{\"\xff\":1,\"\xff\xff\":2}")}); err != nil {
			t.Errorf("Notify() = %v, want nil", err)
		}
		raw.Want(`{"jsonrpc":"2.0","method":"x","params":{"x":{"` + "\uFFFD" + `":1,"` + "\uFFFD\uFFFD" + `":2}}}`)
	})
}

// Where the rules refuse names that stand twice at every depth, such params and
// results do not leave.
func TestDuplicatesDoNotLeave(t *testing.T) {
	twice := json.RawMessage(`{"a":{"b":1,"b":2}}`)
	synctest.Test(t, func(t *testing.T) {
		opts := methods{"m": answers(twice)}.options()
		opts.Profile = &peer.Profile{Rules: codec.Rules{NoDuplicates: true}}
		raw, conn := peertest.Against(t, opts)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantSent(t, conn.Call(ctx, "x", twice, nil), pending.NotSent)
		raw.Send(call(7, "m"))
		raw.Want(failure(7, -32603, "internal error"))
	})
}

// Half of a character, as a token stream cut by JavaScript has it, became U+FFFD
// in a raw member of a typed value.
func TestRawMemberLoneSurrogate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const half, params = `"\ud83d"`, `{"x":"\ud83d"}`
		var reg peer.Registry
		peer.Method[withRaw, withRaw]("m").Handle(&reg, func(_ context.Context, in withRaw) (withRaw, error) {
			if string(in.X) != half {
				t.Errorf("the handler got %s, want %s", in.X, half)
			}
			return withRaw{json.RawMessage(half)}, nil
		})
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg})
		if got, want := ask(raw, "m", params), `"result":`+params; got != want {
			t.Errorf("the answer = %s, want %s", got, want)
		}
		var back withRaw
		done := make(chan error, 1)
		go func() { done <- conn.Call(t.Context(), "x", withRaw{json.RawMessage(half)}, &back) }()
		raw.Want(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + params + `}`)
		raw.Send(result(1, params))
		if err := <-done; err != nil || string(back.X) != half {
			t.Errorf("Call() = %s, %v, want %s", back.X, err, half)
		}
	})
}

// HiddenName and DeepHiddenName are embedded: their names are Go's alone.
type HiddenName struct {
	Kept DeepHolder `json:"kept"`
	F    int        `json:"f"`
}

type DeepHolder struct{ DeepHiddenName }

type DeepHiddenName struct {
	Z int `json:"z"`
}

// encoding/json put the names of embedded Go types into its paths, which the
// other end saw, and left the index of an element out.
func TestPointersV1(t *testing.T) {
	type params struct {
		HiddenName
		List []DeepHolder `json:"list"`
	}
	for _, tc := range []struct{ params, pointer, want, got string }{
		{`{"f":"x"}`, "/f", "number", "string"},
		{`{"F":"x"}`, "/F", "number", "string"}, // any case fits, and it is what was sent
		{`{"kept":{"z":"x"}}`, "/kept/z", "number", "string"},
		{`{"kept":[]}`, "/kept", "object", "array"},
		{`{"list":[{},{"z":true}]}`, "/list/1/z", "number", "boolean"},
		{`{"f":1,"f":"x"}`, "/f", "number", "string"},
	} {
		t.Run(tc.params, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reg peer.Registry
				peer.Method[params, int]("m").Handle(&reg, func(context.Context, params) (int, error) { return 1, nil })
				raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, JSON: peer.JSONv1{}})
				text := "want " + tc.want + ", got " + tc.got
				want := `"error":{"code":-32602,"message":"invalid params: ` + tc.pointer + `: ` + text +
					`","data":{"pointer":"` + tc.pointer + `","want":"` + tc.want + `","got":"` + tc.got + `"}}`
				if got := ask(raw, "m", tc.params); got != want {
					t.Errorf("answer = %s, want %s", got, want)
				}
			})
		})
	}
}

// A pointer made of the other end's own long name did not fit into the answer,
// and -32602 became -32603.
func TestLongPointer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		peer.Method[map[string]int, int]("m").Handle(&reg, func(context.Context, map[string]int) (int, error) { return 1, nil })
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		const want = `"error":{"code":-32602,"message":"invalid params: want number, got string","data":{"pointer":"","want":"number","got":"string"}}`
		if got := ask(raw, "m", `{"`+strings.Repeat("<", 1<<20)+`":"x"}`); got != want {
			t.Errorf("answer = %.300s (%d bytes), want %s", got, len(got), want)
		}
	})
}

// explodes is a result whose decoding panics.
type explodes struct{}

func (*explodes) UnmarshalJSON([]byte) error { panic("decode") }

// A panic of the caller's own decoder left the other calls of a Batch in the
// table for ever.
func TestBatchResultPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		recovered := make(chan any, 1)
		go func() {
			defer func() { recovered <- recover() }()
			_ = conn.Batch(t.Context(), []peer.BatchItem{{Method: "a", Result: &explodes{}}, {Method: "b"}})
		}()
		raw.Want("[" + call(1, "a") + "," + call(2, "b") + "]")
		raw.Send(result(1, "1"), result(2, "2"))
		if v := <-recovered; v != "decode" {
			t.Errorf("Batch() panicked with %v, want decode", v)
		}
		if n := conn.Stats().Pending; n != 0 {
			t.Errorf("Pending = %d after Batch was left, want 0", n)
		}
	})
}

// Call and Batch sent calls whose answer could not be decoded into anything.
func TestResultIsNoPointer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, bad := range []any{5, struct{}{}, (*int)(nil), map[string]int{}} {
			err := conn.Call(ctx, "x", nil, bad)
			wantSent(t, err, pending.NotSent)
			items := []peer.BatchItem{{Method: "x", Result: bad}}
			if berr := conn.Batch(ctx, items); berr != nil || !errors.Is(err, peer.ErrResult) || !errors.Is(items[0].Err, peer.ErrResult) {
				t.Errorf("result %T: Call, Batch, item = %v, %v, %v, want ErrResult", bad, err, berr, items[0].Err)
			}
		}
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 || conn.Stats().Pending != 0 {
			t.Errorf("left %q, Pending = %d, want nothing", got, conn.Stats().Pending)
		}
	})
}

// Registrations that could never work were taken without a word.
func TestUselessRegistrations(t *testing.T) {
	for name, tc := range map[string]struct {
		f    func(r *peer.Registry)
		want string
	}{
		"positional": {func(r *peer.Registry) { r.Handle("x", gateOpen, peer.Positional()) }, "typed"},
		"optional":   {func(r *peer.Registry) { r.Handle("x", gateOpen, peer.OptionalParams()) }, "typed"},
		"notification": {func(r *peer.Registry) {
			r.HandleNotification("x", gateOpen, peer.OptionalParams())
		}, "typed"},
		"int": {func(r *peer.Registry) {
			peer.Method[int, int]("x").Handle(r, func(context.Context, int) (int, error) { return 0, nil })
		}, "int"},
		"string": {func(r *peer.Registry) {
			peer.Notification[string]("x").Handle(r, func(context.Context, string) error { return nil })
		}, "string"},
	} {
		got := panicText(func() { tc.f(new(peer.Registry)) })
		if !strings.HasPrefix(got, `peer: method "x"`) || !strings.Contains(got, tc.want) {
			t.Errorf("%s: panic %q, want one that names x and %s", name, got, tc.want)
		}
	}
}

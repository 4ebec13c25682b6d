package peer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// This file holds that nobody sees that memory is used again: what a handler or a
// caller got stays theirs, whatever runs after.

// keeper is a type whose own JSON methods keep the pointer they are called with:
// UnmarshalJSON in the value, MarshalJSON in a list that outlives it.
type keeper struct {
	N    int
	self *keeper
	seen *seenKeepers
}

type seenKeepers struct {
	mu  sync.Mutex
	all map[*keeper]int // what each held when it was marshalled
}

func (k *keeper) UnmarshalJSON(text []byte) error {
	k.self = k
	_, err := fmt.Sscanf(string(text), "[%d]", &k.N)
	return err
}

func (k *keeper) MarshalJSON() ([]byte, error) {
	if k.seen != nil {
		k.seen.mu.Lock()
		defer k.seen.mu.Unlock()
		k.seen.all[k] = k.N
	}
	return fmt.Appendf(nil, "[%d]", k.N), nil
}

// is reports whether k still holds n, or nothing: that it may be wiped is for
// TestReuseKeptPointerIsWiped.
func (k *keeper) is(n int) bool { return k.N == n || *k == keeper{} }

type (
	fieldKeeper struct{ K keeper }
	arrayKeeper struct {
		Pad string
		K   [2]keeper
	}
	embedder struct {
		Inner struct{ fieldKeeper }
	}
)

func TestReuseMethodsThatKeep(t *testing.T) {
	t.Run("itself", func(t *testing.T) {
		keepPointers(t, func(k keeper) keeper { return k }, func(k *keeper) keeper { return *k })
	})
	t.Run("field", func(t *testing.T) {
		keepPointers(t, func(k keeper) fieldKeeper { return fieldKeeper{k} }, func(f *fieldKeeper) keeper { return f.K })
	})
	t.Run("array", func(t *testing.T) {
		keepPointers(t, func(k keeper) arrayKeeper { return arrayKeeper{K: [2]keeper{k, k}} },
			func(a *arrayKeeper) keeper { return a.K[1] })
	})
	t.Run("embedded", func(t *testing.T) {
		keepPointers(t, func(k keeper) (e embedder) { e.Inner.K = k; return },
			func(e *embedder) keeper { return e.Inner.K })
	})
}

// keepPointers sends values made by wrap both ways, one call after the other, and
// looks in the end at what the pointers point to that their methods kept.
func keepPointers[V any](t *testing.T, wrap func(keeper) V, unwrap func(*V) keeper) {
	m := peer.Method[V, V]("m")
	sent, answered := &seenKeepers{all: map[*keeper]int{}}, &seenKeepers{all: map[*keeper]int{}}
	var params, results []keeper
	r := &peer.Registry{}
	m.Handle(r, func(_ context.Context, v V) (V, error) {
		k := unwrap(&v)
		params = append(params, k)
		return wrap(keeper{N: -k.N, seen: answered}), nil
	})
	conn, _ := peertest.Pair(t, nil, &peer.Options{Handler: r})
	const calls = 200
	for i := 1; i <= calls; i++ {
		v, err := m.Call(t.Context(), conn, wrap(keeper{N: i, seen: sent}))
		if err != nil {
			t.Fatalf("Call(%d) = %v", i, err)
		}
		results = append(results, unwrap(&v))
	}
	for i := range calls {
		if p := params[i]; p.N != i+1 || p.self == nil || !p.self.is(p.N) {
			t.Fatalf("params %d = %d, and %+v where UnmarshalJSON kept its pointer", i+1, p.N, p.self)
		}
		if k := results[i]; k.N != -i-1 || k.self == nil || !k.self.is(k.N) {
			t.Fatalf("result %d = %d, and %+v where UnmarshalJSON kept its pointer", i+1, k.N, k.self)
		}
	}
	for what, seen := range map[string]*seenKeepers{"params": sent, "results": answered} {
		if len(seen.all) < calls {
			t.Errorf("%d of %d %s were marshalled at a place of their own", len(seen.all), calls, what)
		}
		for k, n := range seen.all {
			if !k.is(n) {
				t.Errorf("%s: what MarshalJSON kept was %d and is %d", what, n, k.N)
			}
		}
	}
}

// What UnmarshalJSON and MarshalJSON kept their pointer to was wiped behind them.
func TestReuseKeptPointerIsWiped(t *testing.T) {
	m := peer.Method[keeper, keeper]("m")
	var params keeper
	r := &peer.Registry{}
	m.Handle(r, func(_ context.Context, v keeper) (keeper, error) {
		params = v
		return keeper{N: 8}, nil
	})
	conn, _ := peertest.Pair(t, nil, &peer.Options{Handler: r})
	sent := &seenKeepers{all: map[*keeper]int{}}
	got, err := m.Call(t.Context(), conn, keeper{N: 7, seen: sent})
	if err != nil || params.self.N != 7 || got.self.N != 8 {
		t.Errorf("Call = %v, %v; where UnmarshalJSON decoded to are %+v and %+v, want 7 and 8", got, err, params.self, got.self)
	}
	for k, n := range sent.all {
		if k.N != n {
			t.Errorf("what MarshalJSON encoded was %d and is %d", n, k.N)
		}
	}
}

// rich has everything that may point into memory of somebody else's.
type rich struct {
	Raw   json.RawMessage
	Raws  []json.RawMessage
	List  []int
	Map   map[string]string
	Next  *rich `json:",omitempty"`
	Any   any
	Text  string
	Bytes []byte
}

// richOf is the value of number n, always the same.
func richOf(n int) rich {
	text := strings.Repeat(fmt.Sprint("<", n, ">"), 1+n%7)
	v := rich{
		Raw:   json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
		Raws:  []json.RawMessage{json.RawMessage(fmt.Sprint(n)), json.RawMessage(`"x"`)},
		List:  slices.Repeat([]int{n}, 1+n%5),
		Map:   map[string]string{text: text, "n": fmt.Sprint(n)},
		Any:   []any{text, float64(n)},
		Text:  text,
		Bytes: []byte(text),
	}
	if n%3 > 0 {
		next := richOf(n - n%3)
		v.Next = &next
	}
	return v
}

type other struct {
	N    int
	Text string
	Raw  json.RawMessage
}

func otherOf(n int) other {
	return other{n, fmt.Sprint("other ", n), json.RawMessage(fmt.Sprintf(`[%d]`, n))}
}

func rawOf(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`[ %d , "raw" ]`, n)) }
func anyOf(n int) any             { return []any{float64(n), fmt.Sprint("any ", n)} }
func ptrOf(n int) *other          { v := otherOf(n); return &v }
func mapOf(n int) map[string]int  { return map[string]int{"n": n, fmt.Sprint(n): n} }
func listOf(n int) []string       { return []string{fmt.Sprint(n), "list"} }

// shelf keeps values and compares them in the end with what they were made of.
type shelf struct {
	mu     sync.Mutex
	checks []func() string
}

func keep[V any](s *shelf, what string, v V, of func(int) V, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks = append(s.checks, func() string {
		if want := of(n); !reflect.DeepEqual(v, want) {
			return fmt.Sprintf("%s %d is later\n  %+v, was\n  %+v", what, n, v, want)
		}
		return ""
	})
}

// passing is a Caller between a user and the connection.
type passing struct{ peer.Caller }

func wrapped(c peer.Caller) peer.Caller { return passing{c} }

// between is a middleware that changes nothing.
func between(h peer.Handler) peer.Handler {
	return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) { return h.ServeRPC(ctx, req) })
}

// echoing registers a method over values of of, and returns a call of it. Both
// ends keep what they got.
func echoing[V any](r *peer.Registry, s *shelf, name string, of func(int) V, number func(V) int) func(context.Context, peer.Caller, int) error {
	m := peer.Method[V, V](name)
	m.Handle(r, func(_ context.Context, v V) (V, error) {
		n := number(v)
		keep(s, name+": params", v, of, n)
		return of(n), nil
	})
	return func(ctx context.Context, c peer.Caller, n int) error {
		v, err := m.Call(ctx, c, of(n))
		if err == nil {
			keep(s, name+": result", v, of, n)
		}
		return err
	}
}

// TestReuseKept: seven types on one connection, whose calls use the memory of
// each other; whatever was kept is what it was. So it is with somebody between.
func TestReuseKept(t *testing.T) {
	for _, c := range []struct {
		name        string
		outgoing    []func(peer.Caller) peer.Caller
		middlewares []peer.Middleware
		json        peer.JSON
	}{
		{"direct", nil, nil, nil},
		{"Outgoing", []func(peer.Caller) peer.Caller{wrapped}, nil, nil},
		{"Chain", nil, []peer.Middleware{between}, nil},
		{"JSONv1", nil, nil, peer.JSONv1{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s shelf
			r := &peer.Registry{}
			calls := []func(context.Context, peer.Caller, int) error{
				echoing(r, &s, "rich", richOf, func(v rich) int { return v.List[0] }),
				echoing(r, &s, "other", otherOf, func(v other) int { return v.N }),
				echoing(r, &s, "raw", rawOf, func(v json.RawMessage) (n int) { _, _ = fmt.Sscanf(string(v), "[ %d", &n); return }),
				echoing(r, &s, "any", anyOf, func(v any) int { return int(v.([]any)[0].(float64)) }),
				echoing(r, &s, "pointer", ptrOf, func(v *other) int { return v.N }),
				echoing(r, &s, "map", mapOf, func(v map[string]int) int { return v["n"] }),
				echoing(r, &s, "list", listOf, func(v []string) (n int) { _, _ = fmt.Sscan(v[0], &n); return }),
			}
			var handler peer.Handler = r
			if c.middlewares != nil {
				handler = peer.Chain(r, c.middlewares...)
			}
			conn, _ := peertest.Pair(t, &peer.Options{Outgoing: c.outgoing, JSON: c.json}, &peer.Options{Handler: handler, JSON: c.json})
			var callers sync.WaitGroup
			for g := range 4 {
				callers.Go(func() {
					for i := range 150 {
						if err := calls[(g+i)%len(calls)](t.Context(), conn, 1+g*1000+i); err != nil {
							t.Errorf("call %d of %d = %v", i, g, err)
							return
						}
					}
				})
			}
			callers.Wait()
			for _, check := range s.checks {
				if wrong := check(); wrong != "" {
					t.Fatal(wrong)
				}
			}
		})
	}
}

// TestReuseRequestKept: an untyped handler may keep its *Request; only ID and
// the bytes of Params end with it. No other request ever stands in it.
func TestReuseRequestKept(t *testing.T) {
	type note struct {
		req          *peer.Request
		method       string
		size         int
		params       *byte
		notification bool
	}
	var mu sync.Mutex
	var kept []note
	r := &peer.Registry{}
	for i := range 5 {
		name := fmt.Sprint("raw", i)
		r.Handle(name, peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, note{req: req, method: req.Method, size: len(req.Params), params: &req.Params[0], notification: req.IsNotification()})
			return nil, nil
		}))
	}
	typed := peer.Method[other, other]("typed")
	typed.Handle(r, func(_ context.Context, v other) (other, error) { return v, nil })
	conn, served := peertest.Pair(t, nil, &peer.Options{Handler: r})
	var callers sync.WaitGroup
	for g := range 4 {
		callers.Go(func() {
			for i := range 200 {
				params := slices.Repeat([]int{i}, 1+i%9)
				_ = conn.Call(t.Context(), fmt.Sprint("raw", i%5), params, nil)
				_ = conn.Notify(t.Context(), fmt.Sprint("raw", i%5), params)
				if _, err := typed.Call(t.Context(), conn, otherOf(g)); err != nil {
					t.Errorf("Call = %v", err)
				}
			}
		})
	}
	callers.Wait()
	mu.Lock()
	defer mu.Unlock()
	own := map[*peer.Request]bool{}
	for i, n := range kept {
		if own[n.req] {
			t.Fatalf("request %d has the memory of another one", i)
		}
		own[n.req] = true
		if n.req.Method != n.method || len(n.req.Params) != n.size || &n.req.Params[0] != n.params ||
			n.req.IsNotification() != n.notification || n.req.Conn != served {
			t.Fatalf("request %d for %s is later %+v", i, n.method, n.req)
		}
	}
}

// brittle panics where its text says so.
type brittle int

func (b *brittle) UnmarshalJSON(text []byte) error {
	if string(text) == "13" {
		panic("thirteen")
	}
	return json.Unmarshal(text, (*int)(b))
}

// TestReuseAfterPanic: a result whose decoding panicked halfway is no part of
// the next one.
func TestReuseAfterPanic(t *testing.T) {
	type halves struct {
		N     int
		Later []brittle
	}
	raw, conn := peertest.Against(t, nil)
	m := peer.Method[struct{}, halves]("m")
	// Several times, since the pool of slots may drop one.
	for i := range 20 {
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			_, _ = m.Call(t.Context(), conn, struct{}{})
		}()
		raw.Receive()
		raw.Send(result(2*i+1, `{"N":7,"Later":[1,13]}`))
		if p := <-done; p != "thirteen" {
			t.Fatalf("Call panicked with %v, want the panic of UnmarshalJSON", p)
		}
		go func() {
			got, err := m.Call(t.Context(), conn, struct{}{})
			if err != nil || got.N != 0 || got.Later != nil {
				t.Errorf("Call = %+v, %v, want the zero value: the answer was {}", got, err)
			}
			done <- nil
		}()
		raw.Receive()
		raw.Send(result(2*i+2, `{}`))
		<-done
	}
}

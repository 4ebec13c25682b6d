package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
)

// tap is a Transport whose Read and Write a test looks into.
type tap struct {
	peer.Transport
	read  func(ctx context.Context)
	write func(ctx context.Context, msgs [][]byte, next func() error) error
}

func (p *tap) Read(ctx context.Context, buf []byte) ([]byte, error) {
	if p.read != nil {
		p.read(ctx)
	}
	return p.Transport.Read(ctx, buf)
}

func (p *tap) Write(ctx context.Context, msgs ...[]byte) error {
	next := func() error { return p.Transport.Write(ctx, msgs...) }
	if p.write != nil {
		return p.write(ctx, msgs, next)
	}
	return next()
}

// gated is a tap that lets nothing through before it is opened, and says when a
// Write stands before it.
func gated(t peer.Transport) (through peer.Transport, open func()) {
	opened := make(chan struct{})
	return &tap{Transport: t, write: func(ctx context.Context, _ [][]byte, next func() error) error {
		select {
		case <-opened:
			return next()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}, func() { close(opened) }
}

// wantSent fails t unless err is a *CallError with that state.
func wantSent(t *testing.T, err error, want pending.State) {
	t.Helper()
	var failed *peer.CallError
	if !errors.As(err, &failed) || failed.Sent != want {
		t.Errorf("Call = %v, want a *CallError that says %q", err, want)
	}
}

// An answer that came before the call was registered was lost.
func TestAnswerBeforeWriteReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		raw := peertest.NewRaw(t, a)
		conn := peertest.Start(t, &tap{Transport: b, write: func(_ context.Context, msgs [][]byte, next func() error) error {
			err := next()
			for range msgs {
				raw.Send(result(1, `"early"`))
			}
			synctest.Wait() // all that the answer sets off has happened
			return err
		}}, nil)
		var got string
		if err := conn.Call(t.Context(), "x", nil, &got); err != nil || got != "early" {
			t.Errorf("Call = %q, %v, want the answer that came before Write returned", got, err)
		}
	})
}

func TestAnswersInAnyOrder(t *testing.T) {
	const total = 1000
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		var callers sync.WaitGroup
		for i := range total {
			callers.Go(func() {
				var got int
				if err := conn.Call(t.Context(), "x", []int{i}, &got); err != nil || got != i {
					t.Errorf("Call %d = %d, %v", i, got, err)
				}
			})
		}
		replies := make([]string, total)
		for n := range replies {
			var id, i int
			if _, err := fmt.Sscanf(raw.Receive(), `{"jsonrpc":"2.0","id":%d,"method":"x","params":[%d]}`, &id, &i); err != nil {
				t.Fatal(err)
			}
			replies[n] = result(id, fmt.Sprint(i))
		}
		rand.Shuffle(total, func(i, j int) { replies[i], replies[j] = replies[j], replies[i] })
		raw.Send(replies...)
		callers.Wait()
	})
}

// Both ends used the same id at once, and one request was lost.
func TestSameIDBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		echo := func(_ context.Context, req *peer.Request) (any, error) {
			time.Sleep(time.Second)
			return req.Params, nil
		}
		left, right := peertest.Pair(t, methods{"echo": echo}.options(), methods{"echo": echo}.options())
		var callers sync.WaitGroup
		for i := range 100 {
			for name, conn := range map[string]*peer.Conn{"left": left, "right": right} {
				callers.Go(func() {
					want := fmt.Sprintf(`[%d,%q]`, i, name)
					var got json.RawMessage
					if err := conn.Call(t.Context(), "echo", json.RawMessage(want), &got); err != nil || string(got) != want {
						t.Errorf("Call = %s, %v, want %s", got, err, want)
					}
				})
			}
		}
		callers.Wait()
		raw, conn := peertest.Against(t, methods{"slow": naps(time.Second)}.options())
		callers.Go(func() { _ = conn.Call(t.Context(), "x", nil, nil) })
		raw.Want(call(1, "x"))
		raw.Send(call(1, "slow"), result(1, "5"))
		callers.Wait()
		raw.Want(result(1, `"rested"`))
	})
}

// A context that ended reached the socket and closed it.
func TestCallerContextNeverReachesTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var mu sync.Mutex
		var seen []context.Context
		see := func(ctx context.Context) { mu.Lock(); defer mu.Unlock(); seen = append(seen, ctx) }
		a, b := peer.Pipe()
		peertest.Start(t, a, methods{"hang": hangs, "now": answers(1)}.options())
		conn := peertest.Start(t, &tap{Transport: b, read: see,
			write: func(ctx context.Context, _ [][]byte, next func() error) error { see(ctx); return next() }}, nil)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "caller's"))
		time.AfterFunc(time.Second, cancel)
		_ = conn.Call(ctx, "now", nil, nil)
		_ = conn.Notify(ctx, "now", nil)
		_ = conn.Batch(ctx, []peer.BatchItem{{Method: "now"}})
		_ = conn.Call(ctx, "hang", nil, nil)
		synctest.Wait()
		if err := conn.Call(t.Context(), "now", nil, nil); err != nil {
			t.Errorf("Call after all that = %v, want nil", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(seen) < 9 {
			t.Errorf("%d contexts seen, want those of 4 writes, 1 cancel and 4 reads at least", len(seen))
		}
		for _, ctx := range seen {
			if ctx.Value(key{}) != nil || ctx.Err() != nil {
				t.Errorf("a Read or Write got %v, which belongs to or ended with the caller's", ctx)
			}
		}
	})
}

// A caller with a context of 200 ms came back after 3.2 s, and the same with a
// full socket buffer.
func TestCallerReturnsInTime(t *testing.T) {
	const patience = 200 * time.Millisecond
	blob := []string{strings.Repeat("x", 2<<10)}
	for _, test := range []struct {
		name  string
		stuck bool // the transport never writes
		fill  int  // notifications queued before
		want  pending.State
	}{
		{"no answer", false, 0, pending.Sent},
		{"stuck write", true, 0, pending.MaybeSent},
		{"behind a stuck write", true, 1, pending.NotSent},
		{"full queue", true, 2, pending.NotSent},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := peer.Pipe()
				raw := peertest.NewRaw(t, a)
				open := func() {}
				if test.stuck {
					b, open = gated(b)
				}
				conn := peertest.Start(t, b, &peer.Options{Limits: peer.Limits{QueueBytes: 6 << 10}})
				for range test.fill {
					if err := conn.Notify(t.Context(), "fill", blob); err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // the first is being written
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				err := conn.Call(ctx, "x", blob, nil)
				wantTook(t, "Call", began, patience)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Call = %v, want context.DeadlineExceeded", err)
				}
				wantSent(t, err, test.want)
				if test.fill > 1 { // and what never takes a slot
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					began = time.Now()
					if err := conn.Notify(ctx, "x", blob); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Notify = %v, want context.DeadlineExceeded", err)
					}
					wantTook(t, "Notify", began, patience)
				}
				if n := conn.Stats().Pending; n != 0 {
					t.Errorf("Pending = %d, want 0", n)
				}
				// What was withdrawn in time never leaves, and no cancel tells of it.
				open()
				synctest.Wait()
				var got strings.Builder
				for _, text := range raw.Waiting() {
					var m struct{ Method string }
					_ = json.Unmarshal([]byte(text), &m)
					got.WriteString(m.Method + " ")
				}
				want := strings.Repeat("fill ", test.fill)
				if test.want != pending.NotSent {
					want += "x $/cancelRequest "
				}
				if got.String() != want {
					t.Errorf("left = %q, want %q", got.String(), want)
				}
			})
		})
	}
}

// A context that ends while the writer passes a call by must not make that call
// one that left.
func TestWithdrawnCallDoesNotLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		raw := peertest.NewRaw(t, a)
		b, open := gated(b)
		conn := peertest.Start(t, b, nil)
		if err := conn.Notify(t.Context(), "first", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		parent, cancel := context.WithCancel(t.Context())
		ctx := &slowErr{Context: parent, pause: sync.OnceFunc(func() { open(); time.Sleep(time.Millisecond) })}
		time.AfterFunc(time.Second, cancel)
		wantSent(t, conn.Call(ctx, "x", nil, nil), pending.NotSent)
		synctest.Wait()
		raw.Want(notification("first"))
		if extra := raw.Waiting(); len(extra) > 0 {
			t.Errorf("left = %q, want nothing about a call that was withdrawn", extra)
		}
	})
}

// slowErr pauses in Err, once it has ended.
type slowErr struct {
	context.Context
	pause func()
}

func (c *slowErr) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.pause()
	}
	return err
}

// A late answer completed a newer call that had got the same id.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec record
		raw, conn := peertest.Against(t, rec.attach(&peer.Options{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantSent(t, conn.Call(ctx, "slow", nil, nil, peer.Note("of mine")), pending.Sent)
		raw.Want(call(1, "slow"), `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
		var got int
		done := make(chan error)
		go func() { done <- conn.Call(t.Context(), "next", nil, &got) }()
		raw.Want(call(2, "next"))
		time.Sleep(2 * time.Second)
		raw.Send(result(1, "111"), result(1, "112"), result(2, "222"))
		if err := <-done; err != nil || got != 222 {
			t.Errorf("the next call = %d, %v, want its own answer, 222", got, err)
		}
		synctest.Wait()
		late := rec.of(peer.LateResponse)
		if len(late) != 1 || late[0].Method != "slow" || late[0].Note != "of mine" || late[0].After != 3*time.Second {
			t.Errorf("LateResponse events = %+v, want one of \"slow\", \"of mine\", after 3s", late)
		}
		// It is late once, and unknown if it comes again.
		if n := conn.Stats().Events[peer.UnknownResponse]; n != 1 {
			t.Errorf("UnknownResponse = %d, want 1 for the second", n)
		}
	})
}

func TestAnswerForms(t *testing.T) {
	const unknown, broken = peer.UnknownResponse, peer.BrokenResponse
	for _, test := range []struct {
		name   string
		answer string // the last one, with the id, follows where this completes nothing
		want   string // "42" is the last one; "broken", or the error's code
		event  peer.EventKind
		counts uint64
	}{
		{"plain", result(1, "7"), "7", 0, 0},
		{"1.0", result("1.0", "7"), "7", 0, 0},
		{"1e0", result("1e0", "7"), "7", 0, 0},
		{"null result", result(1, "null"), "0", 0, 0},
		{"result beside null error", `{"jsonrpc":"2.0","id":1,"result":7,"error":null}`, "7", 0, 0},
		{"error code 0", `{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":""}}`, "code 0", 0, 0},
		{"error beside null result", `{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":9,"message":""}}`, "code 9", 0, 0},
		{"twice", result(1, "7") + "\n" + result(1, "8"), "7", unknown, 1},
		{"other id", result(2, "7"), "42", unknown, 1},
		{"string id", result(`"1"`, "7"), "42", unknown, 1},
		{"1.5", result("1.5", "7"), "42", unknown, 1},
		{"id 0", result("0", "7"), "42", unknown, 1},
		{"id beyond 64 bits", result("18446744073709551617", "7"), "42", unknown, 1},
		// It resolved call 0, or ended the session.
		{"error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, "42", unknown, 1},
		{"both", `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`, "broken", broken, 1},
		{"bare id", `{"jsonrpc":"2.0","id":1}`, "broken", broken, 1},
		{"both null", `{"jsonrpc":"2.0","id":1,"result":null,"error":null}`, "broken", broken, 1},
		{"error is text", `{"jsonrpc":"2.0","id":1,"error":"no"}`, "broken", broken, 1},
		{"error without code", `{"jsonrpc":"2.0","id":1,"error":{"message":""}}`, "broken", broken, 1},
		{"code 1.5", `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}`, "broken", broken, 1},
		{"no version", `{"id":1,"result":7}`, "broken", broken, 1},
		{"result twice", `{"jsonrpc":"2.0","id":1,"result":7,"result":8}`, "broken", broken, 1},
		{"broken for another", `{"jsonrpc":"2.0","id":2,"error":"no"}`, "42", broken, 1},
		{"does not fit", result(1, `"text"`), "peer: result", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, nil)
				var n int
				done := make(chan error, 1)
				go func() { done <- conn.Call(t.Context(), "x", nil, &n) }()
				raw.Want(call(1, "x"))
				raw.Send(strings.Split(test.answer, "\n")...)
				synctest.Wait()
				counts := conn.Stats().Events
				raw.Send(result(1, "42"))
				err := <-done
				got := fmt.Sprint(n)
				var answer *peer.Error
				var failed *peer.ResponseError
				switch {
				case errors.As(err, &failed):
					got = "broken"
				case errors.As(err, &answer):
					got = fmt.Sprint("code ", int64(answer.Code))
				case err != nil:
					got = errors.Unwrap(err).Error()
				}
				if got != test.want && (test.want != "peer: result" || !strings.HasPrefix(got, test.want)) {
					t.Errorf("Call = %s, %v, want %s", got, err, test.want)
				}
				if err != nil {
					wantSent(t, err, pending.Sent)
				}
				want := map[peer.EventKind]uint64{}
				if test.counts > 0 {
					want[test.event] = test.counts
				}
				if !maps.Equal(counts, want) {
					t.Errorf("events = %v, want %v", counts, want)
				}
				if extra := raw.Waiting(); len(extra) > 0 {
					t.Errorf("an answer was answered: %q", extra)
				}
			})
		})
	}
}

// Pending calls tell how far their requests got, whatever ends them.
func TestSentStates(t *testing.T) {
	gone := errors.New("the cable is cut")
	for _, test := range []struct {
		name  string
		calls int // the last of them is looked at
		open  bool
		want  pending.State
	}{
		{"before the write", 2, false, pending.NotSent},
		{"during the write", 1, false, pending.MaybeSent},
		{"after the write", 1, true, pending.Sent},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := peer.Pipe()
				peertest.NewRaw(t, a)
				cut := make(chan struct{})
				conn := peertest.Start(t, &tap{Transport: b, write: func(_ context.Context, _ [][]byte, next func() error) error {
					if test.open {
						return next()
					}
					<-cut
					return gone
				}}, nil)
				done := make([]chan error, test.calls)
				for i := range done {
					done[i] = make(chan error, 1)
					go func() { done[i] <- conn.Call(t.Context(), "x", nil, nil) }()
					synctest.Wait()
				}
				want := gone
				if close(cut); test.open {
					want = peer.ErrClosed
					_ = conn.Close()
				}
				err := <-done[test.calls-1]
				wantSent(t, err, test.want)
				if !errors.Is(err, want) {
					t.Errorf("Call = %v, want %v", err, want)
				}
			})
		})
	}
}

func TestPendingLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Limits: peer.Limits{Pending: 2}})
		done := make(chan error, 2)
		for i := range 2 {
			go func() { done <- conn.Call(t.Context(), "x", nil, nil) }()
			raw.Want(call(i+1, "x"))
		}
		err := conn.Call(t.Context(), "x", nil, nil)
		if !errors.Is(err, pending.ErrFull) {
			t.Errorf("Call over the limit = %v, want pending.ErrFull", err)
		}
		wantSent(t, err, pending.NotSent)
		raw.Send(result(2, "0"))
		<-done
		go func() { done <- conn.Call(t.Context(), "x", nil, nil) }()
		raw.Want(call(3, "x")) // the counter goes on, and wastes nothing
		raw.Send(result(1, "0"), result(3, "0"))
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Call = %v, want nil", err)
			}
		}
	})
}

// garbage is a JSON that does not write JSON.
type garbage struct{ peer.JSONv2 }

func (garbage) Marshal(dst []byte, _ any) ([]byte, error) { return append(dst, "{]"...), nil }

// panics is a value whose own encoding panics.
type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("oh") }

// What cannot be sent fails where it was made: nothing leaves, no slot is lost.
func TestCallParams(t *testing.T) {
	var syntax *codec.SyntaxError
	for _, test := range []struct {
		name   string
		method string
		params any
		json   peer.JSON
		want   string // what leaves, or
		is, as any    // what fails: the error, or a pointer to its type
	}{
		{name: "none", want: ""},
		{name: "raw null", params: json.RawMessage("null"), want: ""},
		{name: "nil raw", params: json.RawMessage(nil), want: ""},
		{name: "nil map", params: map[string]int(nil), want: `,"params":{}`},
		{name: "nil map, v1", params: map[string]int(nil), json: peer.JSONv1{}, want: ""},
		{name: "nil pointer", params: (*struct{})(nil), want: ""},
		{name: "raw, to the byte", params: json.RawMessage(` { "a" : 1.0e0 , "\u0061":[ ] } `), want: `,"params": { "a" : 1.0e0 , "\u0061":[ ] } `},
		{name: "number", params: 1, is: peer.ErrParams},
		{name: "string", params: "x", is: peer.ErrParams},
		{name: "bool", params: true, is: peer.ErrParams},
		{name: "raw number", params: json.RawMessage(" 1"), is: peer.ErrParams},
		{name: "empty raw", params: json.RawMessage{}, as: &syntax},
		{name: "broken raw", params: json.RawMessage(`{"a":}`), as: &syntax},
		{name: "two raw values", params: json.RawMessage(`{}{}`), as: &syntax},
		{name: "not UTF-8 in raw", params: json.RawMessage("[\"\xff\"]"), is: codec.ErrUTF8},
		{name: "channel", params: []any{make(chan int)}, as: new(*jsonv2.SemanticError)},
		{name: "channel, v1", params: make(chan int), json: peer.JSONv1{}, as: new(*json.UnsupportedTypeError)},
		{name: "JSON that is none", params: struct{}{}, json: garbage{}, as: &syntax},
		{name: "method that is not UTF-8", method: "x\xff", is: peer.ErrParams},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{JSON: test.json})
				if test.method == "" {
					test.method = "x"
				}
				fails := test.is != nil || test.as != nil
				check := func(what string, err error) {
					is, _ := test.is.(error)
					switch {
					case !fails && err != nil,
						is != nil && !errors.Is(err, is),
						test.as != nil && !errors.As(err, test.as):
						t.Errorf("%s = %v, want error: %t (%v, %T)", what, err, fails, is, test.as)
					}
				}
				done := make(chan error, 1)
				go func() { done <- conn.Call(t.Context(), test.method, test.params, nil) }()
				synctest.Wait()
				if !fails {
					raw.Want(`{"jsonrpc":"2.0","id":1,"method":"x"` + test.want + `}`)
					raw.Send(result(1, "0"))
				}
				err := <-done
				check("Call", err)
				if fails {
					wantSent(t, err, pending.NotSent)
				}
				check("Notify", conn.Notify(t.Context(), test.method, test.params))
				synctest.Wait()
				if !fails {
					raw.Want(`{"jsonrpc":"2.0","method":"x"` + test.want + `}`)
				}
				if extra := raw.Waiting(); len(extra) > 0 {
					t.Errorf("left = %q, want nothing", extra)
				}
				if n := conn.Stats().Pending; n != 0 {
					t.Errorf("Pending = %d, want 0", n)
				}
			})
		})
	}
}

// A panic of the caller's own type is the caller's; it leaves no slot behind.
func TestCallParamsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := peertest.Against(t, nil)
		func() {
			defer func() { _ = recover() }()
			_ = conn.Call(t.Context(), "x", []any{panics{}}, nil)
		}()
		if n := conn.Stats().Pending; n != 0 {
			t.Errorf("Pending = %d after a panic in MarshalJSON, want 0", n)
		}
	})
}

// The result of a handler whose own encoding panics killed the process.
func TestResultPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, methods{"x": answers(panics{})}.options())
		raw.Send(call(7, "x"))
		raw.Want(`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"internal error"}}`)
	})
}

func TestResultToTheByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = `{ "a" : 1.0e0 , "\u0061":[ 9007199254740993 ] }`
		left, _ := peertest.Pair(t, nil, methods{"x": answers(json.RawMessage(want))}.options())
		var got json.RawMessage
		if err := left.Call(t.Context(), "x", nil, &got); err != nil || string(got) != want {
			t.Fatalf("Call = %s, %v, want %s", got, err, want)
		}
		// The result is the caller's own: what comes later must not touch it.
		for range 10 {
			if err := left.Call(t.Context(), "y", nil, nil); !errors.Is(err, &peer.Error{Code: codec.MethodNotFound}) {
				t.Fatalf("Call(y) = %v, want method not found", err)
			}
		}
		if string(got) != want {
			t.Errorf("the result became %s", got)
		}
	})
}

// listener is a Caller that writes down what passes.
type listener struct {
	peer.Caller
	name string
	seen *[]string
}

func (l listener) Call(ctx context.Context, method string, params, result any, opts ...peer.CallOption) error {
	*l.seen = append(*l.seen, l.name+" call "+method)
	return l.Caller.Call(ctx, method, params, result, opts...)
}

func (l listener) Notify(ctx context.Context, method string, params any) error {
	*l.seen = append(*l.seen, l.name+" notify "+method)
	return l.Caller.Notify(ctx, method, params)
}

func TestOutgoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		opts := methods{"back": func(ctx context.Context, _ *peer.Request) (any, error) {
			caller, ok := peer.CallerFrom(ctx)
			if !ok {
				return nil, io.ErrUnexpectedEOF
			}
			return 1, caller.Notify(ctx, "from a handler", nil)
		}}.options()
		for _, name := range []string{"outer", "inner"} {
			opts.Outgoing = append(opts.Outgoing, func(c peer.Caller) peer.Caller { return listener{c, name, &seen} })
		}
		left, right := peertest.Pair(t, opts, methods{"x": answers(1)}.options())
		errs := errors.Join(left.Call(t.Context(), "x", nil, nil), left.Notify(t.Context(), "y", nil),
			right.Call(t.Context(), "back", nil, nil))
		want := "outer call x, inner call x, outer notify y, inner notify y, outer notify from a handler, inner notify from a handler"
		if got := strings.Join(seen, ", "); errs != nil || got != want {
			t.Errorf("seen = %s, %v, want %s", got, errs, want)
		}
		if _, ok := peer.CallerFrom(t.Context()); ok {
			t.Error("CallerFrom(no handler's context) = true, want false")
		}
	})
}

// A handler that called back waited for the reader, which waited for it.
func TestHandlerCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deeper := func(ctx context.Context, req *peer.Request) (any, error) {
			var in []int
			if err := req.Decode(&in); err != nil || in[0] == 0 {
				return in[0], err
			}
			caller, _ := peer.CallerFrom(ctx)
			var out int
			err := caller.Call(ctx, "deeper", []int{in[0] - 1}, &out)
			return out + 1, err
		}
		left, _ := peertest.Pair(t, methods{"deeper": deeper}.options(), methods{"deeper": deeper}.options())
		began := time.Now()
		var got int
		if err := left.Call(t.Context(), "deeper", []int{100}, &got); err != nil || got != 100 {
			t.Errorf("Call = %d, %v, want 100", got, err)
		}
		wantTook(t, "Call", began, 0)
	})
}

// Nothing may hold the reader up: here the transport does not write, a hundred
// answers wait for room, a notification hangs, and so do the logger and Events.
func TestReaderNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		raw := peertest.NewRaw(t, a)
		b, open := gated(b)
		release := make(chan struct{})
		opts := methods{
			"blob": answers(strings.Repeat("x", 2<<10)),
			"hang": func(ctx context.Context, _ *peer.Request) (any, error) { <-ctx.Done(); <-release; return nil, nil },
			"wait": hangs,
		}.options()
		opts.Limits.QueueBytes = 6 << 10
		opts.Events = func(peer.Event) { <-release }
		opts.NoBarrier = true
		conn := peertest.Start(t, b, opts)
		done := make(chan error, 1)
		go func() { done <- conn.Call(t.Context(), "x", nil, nil) }()
		synctest.Wait()
		raw.Send(call(`"w"`, "wait"))
		for i := range 100 {
			raw.Send(call(i, "blob"), notification("hang"))
		}
		raw.Send(result(99, "0"), `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"w"}}`, "rubbish", result(1, "0"))
		if err := <-done; err != nil {
			t.Errorf("Call = %v, want its answer past everything that waits", err)
		}
		close(release)
		open()
		synctest.Wait()
		cancelled := `{"jsonrpc":"2.0","id":"w","error":{"code":-32800,"message":"request cancelled"}}`
		all := raw.Waiting()
		if len(all) != 103 || !slices.Contains(all, cancelled) {
			t.Errorf("%d messages left, the cancelled answer among them: %t; want 103, true", len(all), slices.Contains(all, cancelled))
		}
	})
}

package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

const internalError = `"error":{"code":-32603,"message":"internal error"}`

type cyclic struct{ Next *cyclic }

type unwilling struct{}

func (unwilling) MarshalJSON() ([]byte, error) { return nil, errors.New("unwilling") }

// returning is a handler that gives always the same.
func returning(result any, err error) peer.Handler {
	return peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return result, err })
}

// What a handler gives, what the other end sees of it (JSON-RPC 2.0 section
// 5.1), and how many lines with the error itself stand in the log here.
func TestHandlerOutcome(t *testing.T) {
	loop := &cyclic{}
	loop.Next = loop
	odd := ` { "k" : 1e2, "big":12345678901234567890.50 , "s":"\u0061" } `
	secret := errors.New("connection to db-7 refused")
	for _, tc := range []struct {
		name   string
		result any
		err    error
		want   string
		logged string // in the one line about it; empty for none
	}{
		{"nil", nil, nil, `"result":null`, ""},
		{"raw", json.RawMessage(`[1.0 , 2e0]`), nil, `"result":[1.0 , 2e0]`, ""},
		{"nil raw", json.RawMessage(nil), nil, `"result":null`, ""},
		{"application error", nil, &peer.Error{Code: 7, Message: "no \"such\" thing"}, `"error":{"code":7,"message":"no \"such\" thing"}`, ""},
		{"data to the byte", nil, &peer.Error{Code: -7, Message: "m", Data: json.RawMessage(odd)}, `"error":{"code":-7,"message":"m","data":` + odd + `}`, ""},
		{"data null", nil, &peer.Error{Code: 7, Data: json.RawMessage(`null`)}, `"error":{"code":7,"message":"","data":null}`, ""},
		{"extreme code", nil, &peer.Error{Code: math.MinInt64}, `"error":{"code":-9223372036854775808,"message":""}`, ""},
		{"wrapped", nil, fmt.Errorf("outer secret: %w", &peer.Error{Code: 8, Message: "inner"}), `"error":{"code":8,"message":"inner"}`, ""},
		{"joined", nil, errors.Join(secret, &peer.Error{Code: 9, Message: "m"}), `"error":{"code":9,"message":"m"}`, ""},
		{"error wins over a result", 5, &peer.Error{Code: 7, Message: "m"}, `"error":{"code":7,"message":"m"}`, ""},
		{"plain", nil, secret, internalError, "db-7 refused"},
		{"data no JSON", nil, &peer.Error{Code: 7, Data: json.RawMessage(`{"open":`)}, internalError, "data of error 7"},
		{"data two texts", nil, &peer.Error{Code: 7, Data: json.RawMessage(`1,"result":2`)}, internalError, "data of error 7"},
		{"data empty", nil, &peer.Error{Code: 7, Data: json.RawMessage{}}, internalError, "data of error 7"},
		{"context of another", nil, context.Canceled, internalError, "context canceled"},
		{"Forward of what no call gave", nil, peer.Forward(secret), internalError, "db-7 refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log textLog
				raw, _ := peertest.Against(t, &peer.Options{Handler: returning(tc.result, tc.err), Logger: log.logger()})
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
				raw.Want(`{"jsonrpc":"2.0","id":1,` + tc.want + `}`)
				synctest.Wait()
				if got := log.lines("duet:"); tc.logged == "" && len(got) != 0 ||
					tc.logged != "" && (len(got) != 1 || !strings.Contains(got[0], tc.logged)) {
					t.Errorf("logged %q, want a line with %q", got, tc.logged)
				}
			})
		})
	}
}

// A reported fault: a result that cannot be encoded gave no answer at all.
func TestUnencodableResult(t *testing.T) {
	loop := &cyclic{}
	loop.Next = loop
	for _, tc := range []struct {
		name   string
		result any
		raw    bool
	}{
		{name: "channel", result: make(chan int)},
		{name: "function", result: func() {}},
		{name: "NaN", result: math.NaN()},
		{name: "infinity", result: []float64{math.Inf(1)}},
		{name: "cyclic", result: loop},
		{name: "MarshalJSON fails", result: unwilling{}},
		{name: "deep inside", result: map[string]any{"a": []any{1, make(chan int)}}},
		{name: "raw that is no JSON", result: json.RawMessage(`{"a":}`)},
		{name: "raw that is empty", result: json.RawMessage{}},
		{name: "raw that breaks out", result: json.RawMessage(`1},{"jsonrpc":"2.0"`)},
		{name: "raw that is not UTF-8", result: json.RawMessage("\"\xff\"")},
		{name: "raw inside", result: map[string]any{"a": json.RawMessage(`{`)}},
	} {
		for _, codec := range []peer.JSON{peer.JSONv2{}, peer.JSONv1{}} {
			t.Run(fmt.Sprintf("%s %T", tc.name, codec), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log textLog
					raw, conn := peertest.Against(t, &peer.Options{Handler: returning(tc.result, nil), JSON: codec, Logger: log.logger()})
					raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
					raw.Want(`{"jsonrpc":"2.0","id":1,` + internalError + `}`)
					raw.Send(`[{"jsonrpc":"2.0","id":2,"method":"m"}]`)
					raw.Want(`[{"jsonrpc":"2.0","id":2,` + internalError + `}]`)
					synctest.Wait()
					if got := log.lines("peer: result"); len(got) != 2 {
						t.Errorf("logged %q, want a line for each", got)
					}
					if got := conn.Stats().Methods["_OTHER"].Errors; got != 2 {
						t.Errorf("Stats() counts %d errors, want 2", got)
					}
				})
			})
		}
	}
}

// A reported fault: the error of a downstream service went on with its data.
func TestForwardedError(t *testing.T) {
	const downstream = `{"jsonrpc":"2.0","id":1,"error":{"code":55,"message":"secret table","data":{"row": 1.0}}}`
	for _, tc := range []struct {
		name string
		pass func(error) error
		want string
	}{
		{"returned", func(err error) error { return err }, internalError},
		{"wrapped", func(err error) error { return fmt.Errorf("down: %w", err) }, internalError},
		{"Forward", peer.Forward, `"error":{"code":55,"message":"secret table","data":{"row": 1.0}}`},
		{"Forward of a wrapped one", func(err error) error { return peer.Forward(fmt.Errorf("down: %w", err)) },
			`"error":{"code":55,"message":"secret table","data":{"row": 1.0}}`},
		{"a wrapped Forward", func(err error) error { return fmt.Errorf("down: %w", peer.Forward(err)) },
			`"error":{"code":55,"message":"secret table","data":{"row": 1.0}}`},
		{"an error of its own", func(err error) error { return &peer.Error{Code: 1, Message: err.Error()[:4]} },
			`"error":{"code":1,"message":"peer"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _ := peertest.Against(t, &peer.Options{Handler: peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
					return nil, tc.pass(req.Conn.Call(ctx, "down", nil, nil))
				})})
				raw.Send(`{"jsonrpc":"2.0","id":"up","method":"m"}`)
				raw.Want(`{"jsonrpc":"2.0","id":1,"method":"down"}`)
				raw.Send(downstream)
				raw.Want(`{"jsonrpc":"2.0","id":"up",` + tc.want + `}`)
			})
		})
	}
}

// A panic stays here, with its stack in the log alone; so does a handler that
// leaves its goroutine.
func TestPanic(t *testing.T) {
	for _, tc := range []struct {
		name   string
		f      func()
		logged []string
	}{
		{"value", func() { panic("secret panic") }, []string{"secret panic", "errors_test.go", "method=m"}},
		{"error", func() { panic(errors.New("secret panic")) }, []string{"secret panic"}},
		{"wire error", func() { panic(&peer.Error{Code: 5, Message: "secret panic"}) }, []string{"secret panic"}},
		{"of the library below", func() { _ = strings.Repeat("x", -1) }, []string{"negative Repeat count"}},
		{"Goexit", runtime.Goexit, []string{"did not return"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log textLog
				var reg peer.Registry
				reg.Handle("m", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { tc.f(); return nil, nil }))
				reg.Handle("echo", gateOpen)
				raw, conn := peertest.Against(t, &peer.Options{Handler: &reg, Logger: log.logger()})
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
				raw.Want(`{"jsonrpc":"2.0","id":1,` + internalError + `}`)
				synctest.Wait()
				for _, part := range tc.logged {
					if !strings.Contains(log.String(), part) {
						t.Errorf("the log is without %q: %s", part, log.String())
					}
				}
				if got := len(log.lines("level=ERROR")); got != 1 {
					t.Errorf("%d lines logged, want 1: %s", got, log.String())
				}
				raw.Send(`[{"jsonrpc":"2.0","id":2,"method":"m"},{"jsonrpc":"2.0","id":3,"method":"m"}]`)
				if got := raw.Receive(); strings.Count(got, internalError) != 2 {
					t.Errorf("Receive() = %s, want two internal errors", got)
				}
				// A notification that does it does not hold up what comes behind.
				raw.Send(`{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","id":4,"method":"echo"}`)
				raw.Want(`{"jsonrpc":"2.0","id":4,"result":null}`)
				synctest.Wait()
				got := conn.Stats()
				if got.InFlight != 0 || got.Notifications != 0 || got.Events[peer.RefusedNotification] != 2 {
					t.Errorf("Stats() = %+v, want nothing in flight and two refused notifications", got)
				}
			})
		})
	}
}

// Codes of the range JSON-RPC 2.0 section 5.1 reserves go out as chosen, and are
// reported once; those that belong there are not.
func TestReservedCode(t *testing.T) {
	profile := &peer.Profile{Codes: []codec.Code{-32002}, Cancelled: -32042}
	for _, tc := range []struct {
		code codec.Code
		want uint64
	}{
		{-32603, 1}, {-32000, 1}, {-32768, 1}, {-32700, 1}, {-32600, 1}, {-32601, 1}, {-32001, 1},
		{-32602, 0}, {-32002, 0}, {-32042, 0}, {-31999, 0}, {-32769, 0}, {0, 0}, {1, 0},
	} {
		t.Run(fmt.Sprint(int64(tc.code)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{
					Handler: returning(nil, &peer.Error{Code: tc.code, Message: "m"}), Profile: profile,
				})
				for range 3 {
					raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
					raw.Want(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m"}}`, int64(tc.code)))
				}
				if got := conn.Stats().Events[peer.ReservedCode]; got != tc.want {
					t.Errorf("Stats() counts %d ReservedCode, want %d", got, tc.want)
				}
			})
		})
	}
}

// An error is counted and logged once, also when its answer waits for room.
func TestErrorCountedOnceWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log textLog
		var reg peer.Registry
		reg.Handle("big", returning(strings.Repeat("x", 4<<10), nil))
		reg.Handle("plain", returning(nil, errors.New("plain")))
		a, b := peer.Pipe()
		conn := peertest.Start(t, b, &peer.Options{Handler: &reg, Logger: log.logger(), Limits: peer.Limits{QueueBytes: 4 << 10}})
		for i, m := range []string{"big", "big", "big", "plain"} {
			if err := a.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"%s"}`, i, m)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for range 4 {
			if _, err := a.Read(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := conn.Stats().Methods["plain"].Errors; got != 1 {
			t.Errorf("Stats() counts %d errors, want 1", got)
		}
		if got := log.lines("handler failed"); len(got) != 1 {
			t.Errorf("logged %q, want one line", got)
		}
	})
}

// What the library answers with itself is nobody's choice, and not reported.
func TestOwnCodesAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := playRegistry()
		reg.Handle("plain", returning(nil, errors.New("plain")))
		raw, conn := peertest.Against(t, &peer.Options{Handler: reg, Limits: peer.Limits{InFlight: 1}})
		raw.Send(`{"jsonrpc":"2.0","id":0,"method":"sleep","params":{"ms":60000}}`)
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"sleep"}`)
		if got := raw.Receive(); !strings.Contains(got, "-32010") {
			t.Errorf("Receive() = %s, want overloaded", got)
		}
		raw.Send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":0}}`)
		raw.Want(`{"jsonrpc":"2.0","id":0,"error":{"code":-32800,"message":"request cancelled"}}`)
		for _, tc := range []struct{ text, code string }{
			{`{"jsonrpc":"2.0","id":1,"method":"unknown"}`, "-32601"},
			{`{"jsonrpc":"2.0","id":1,"method":"sum","params":{}}`, "-32602"},
			{`{"jsonrpc":"2.0","id":1,"method":"plain"}`, "-32603"},
			{`{"jsonrpc":"2.0","id":1}`, "-32600"},
			{`{`, "-32700"},
		} {
			raw.Send(tc.text)
			if got := raw.Receive(); !strings.Contains(got, `"code":`+tc.code) {
				t.Errorf("%s is answered with %s, want %s", tc.text, got, tc.code)
			}
		}
		if got := conn.Stats().Events[peer.ReservedCode]; got != 0 {
			t.Errorf("Stats() counts %d ReservedCode, want 0", got)
		}
	})
}

// A profile whose results are objects sends no other.
func TestObjectResult(t *testing.T) {
	for _, tc := range []struct {
		name   string
		result any
		want   string
	}{
		{"object", map[string]int{"a": 1}, `"result":{"a":1}`},
		{"raw object behind space", json.RawMessage(" {}"), `"result": {}`},
		{"null", nil, internalError},
		{"array", []int{1}, internalError},
		{"number", 1, internalError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _ := peertest.Against(t, &peer.Options{
					Handler: returning(tc.result, nil), Profile: &peer.Profile{Rules: codec.Rules{ObjectResult: true}},
				})
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
				raw.Want(`{"jsonrpc":"2.0","id":1,` + tc.want + `}`)
			})
		})
	}
}

// A handler that returns when its connection is gone has its answer counted.
func TestDroppedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events eventList
		hold := make(chan struct{})
		var reg peer.Registry
		reg.Handle("m", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { <-hold; return 1, nil }))
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg, Events: events.add})
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`, `[{"jsonrpc":"2.0","id":2,"method":"m"},{"jsonrpc":"2.0","id":3,"method":"m"}]`)
		synctest.Wait()
		raw.Close(nil)
		synctest.Wait()
		select {
		case <-conn.Done():
			t.Error("Done() is closed while handlers run")
		default:
		}
		close(hold)
		<-conn.Done()
		got := events.of(peer.DroppedAnswer)
		if len(got) != 3 || conn.Stats().Events[peer.DroppedAnswer] != 3 {
			t.Fatalf("%d events, %d counted, want 3", len(got), conn.Stats().Events[peer.DroppedAnswer])
		}
		for _, ev := range got {
			if ev.Method != "m" || ev.Err == nil {
				t.Errorf("event %+v, want method m and the cause", ev)
			}
		}
		if got := conn.Stats().InFlight; got != 0 {
			t.Errorf("Stats().InFlight = %d, want 0", got)
		}
	})
}

// What never ran when the connection ended gives its place back, and a
// notification has no answer that could be dropped.
func TestEndFreesWhatNeverRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Handler: make(gate)})
		raw.Send(`{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","id":1,"method":"m"}`)
		synctest.Wait()
		_ = conn.Close()
		<-conn.Done()
		got := conn.Stats()
		if got.InFlight != 0 || got.Notifications != 0 {
			t.Errorf("Stats() = %d calls and %d notifications, want 0 of each", got.InFlight, got.Notifications)
		}
		if got := got.Events[peer.DroppedAnswer]; got != 1 {
			t.Errorf("Stats() counts %d DroppedAnswer, want 1, that of the call", got)
		}
	})
}

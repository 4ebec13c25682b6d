package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
)

const overloaded = `"error":{"code":-32010,"message":"overloaded"}}`

// callText is a call of method "m" that is size bytes long.
func callText(id string, size int) string {
	head := `{"jsonrpc":"2.0","id":` + id + `,"method":"m","params":["`
	return head + strings.Repeat("x", size-len(head)-len(`"]}`)) + `"]}`
}

func noteText(size int) string {
	head := `{"jsonrpc":"2.0","method":"m","params":["`
	return head + strings.Repeat("x", size-len(head)-len(`"]}`)) + `"]}`
}

// wantLimit fails the test if err is not a *LimitError that names field.
func wantLimit(t *testing.T, what string, err error, field string) {
	t.Helper()
	var limit *peer.LimitError
	if !errors.As(err, &limit) || limit.What != field {
		t.Errorf("%s = %v, want a *LimitError of %s", what, err, field)
	}
}

// wantClose fails the test if the bare end was not told code.
func wantClose(t *testing.T, raw *peertest.Raw, code int) {
	t.Helper()
	var closed *peer.CloseError
	if err := raw.Ended(); !errors.As(err, &closed) || closed.Code != code {
		t.Errorf("Ended() = %v, want close code %d", err, code)
	}
}

// A reported fault: queues behind a semaphore grew without bound. A call over
// the bound is answered at once, and those that run are not touched.
func TestOverload(t *testing.T) {
	for _, tc := range []struct {
		name    string
		limits  peer.Limits
		admit   []string
		refused string // call with id 9
	}{
		{"InFlight", peer.Limits{InFlight: 2}, []string{callText("1", 60), callText("2", 60)}, callText("9", 60)},
		{"InFlightBytes", peer.Limits{InFlightBytes: 202}, []string{callText("1", 100), callText("2", 100)}, callText("9", 60)},
		{"one larger than InFlightBytes alone", peer.Limits{InFlightBytes: 200}, []string{callText("1", 1000)}, callText("9", 60)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := make(gate)
				raw, conn := peertest.Against(t, &peer.Options{Handler: g, Limits: tc.limits})
				raw.Send(tc.admit...)
				raw.Send(tc.refused)
				raw.Want(`{"jsonrpc":"2.0","id":9,` + overloaded)
				synctest.Wait()
				if got := conn.Stats(); got.InFlight != len(tc.admit) || got.Events[peer.OverLimit] != 1 {
					t.Errorf("Stats() = %d in flight, %d OverLimit, want %d and 1", got.InFlight, got.Events[peer.OverLimit], len(tc.admit))
				}
				if got := raw.Waiting(); len(got) != 0 {
					t.Errorf("calls in flight were answered: %q", got)
				}
				close(g)
				for range tc.admit {
					if got := raw.Receive(); !strings.Contains(got, `"result":["xx`) {
						t.Errorf("Receive() = %s, want a result", got)
					}
				}
				synctest.Wait()
				if got := conn.Stats().InFlight; got != 0 {
					t.Errorf("Stats().InFlight = %d, want 0 when the handlers have returned", got)
				}
				raw.Send(tc.refused) // the place is free again
				if got := raw.Receive(); !strings.Contains(got, `"id":9,"result"`) {
					t.Errorf("Receive() = %s, want a result for 9", got)
				}
			})
		})
	}
}

// The event names the bound that was passed.
func TestOverloadEventNamesBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events eventList
		raw, _ := peertest.Against(t, &peer.Options{
			Handler: make(gate), Events: events.add, Limits: peer.Limits{InFlightBytes: 100},
		})
		raw.Send(callText("1", 90), callText("2", 90))
		synctest.Wait()
		got := events.of(peer.OverLimit)
		if len(got) != 1 {
			t.Fatalf("%d events, want 1", len(got))
		}
		wantLimit(t, "event", got[0].Err, "InFlightBytes")
	})
}

func TestNotificationBounds(t *testing.T) {
	for _, tc := range []struct {
		name, field string
		limits      peer.Limits
		fit         []string
		over        string
	}{
		{"count", "Notifications", peer.Limits{Notifications: 3}, []string{noteText(60), noteText(60), noteText(60)}, noteText(60)},
		{"bytes", "NotificationBytes", peer.Limits{NotificationBytes: 202}, []string{noteText(100), noteText(100)}, noteText(60)},
		{"one larger alone", "NotificationBytes", peer.Limits{NotificationBytes: 200}, []string{noteText(1000)}, noteText(60)},
		{"in a batch", "Notifications", peer.Limits{Notifications: 1}, []string{"[" + noteText(60) + "]"}, "[" + noteText(60) + "]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Handler: make(gate), Limits: tc.limits})
				raw.Send(tc.fit...)
				synctest.Wait()
				if err := conn.Err(); err != nil {
					t.Fatalf("Err() = %v within the bound", err)
				}
				if got := conn.Stats().Notifications; got != len(tc.fit) {
					t.Errorf("Stats().Notifications = %d, want %d", got, len(tc.fit))
				}
				raw.Send(tc.over)
				wantClose(t, raw, 1008)
				<-conn.Done()
				wantLimit(t, "Err()", conn.Err(), tc.field)
				if got := conn.Stats().Notifications; tc.name != "in a batch" && got > len(tc.fit) {
					t.Errorf("Stats().Notifications = %d after the end", got)
				}
			})
		})
	}
}

// A reported fault: a client that does not read cost 2.27 GB over 300
// connections. What is encoded and not written stays within QueueBytes, handlers
// do not start while answers wait, slots stay taken meanwhile, and the refusals
// that follow are bounded too.
func TestSilentReaderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 512
		big := strings.Repeat("x", 64<<10)
		var ran atomic.Int64
		a, b := peer.Pipe()
		conn := peertest.Start(t, b, &peer.Options{
			Limits: peer.Limits{InFlight: calls},
			Handler: peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
				ran.Add(1)
				return big, nil
			}),
		})
		send := func(id int) error {
			return a.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"m"}`, id))
		}
		for id := range calls {
			if err := send(id); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // what starts at the same time may still finish
		}
		if got := conn.Stats().InFlight; ran.Load() > 32 || got < calls-16 {
			t.Errorf("%d handlers ran and %d slots are taken, want a few and about %d", ran.Load(), got, calls)
		}

		// Each refusal is some 80 bytes, and 256 KiB are kept for them.
		most := calls + 16 + 256<<10/70
		id := calls
		for conn.Err() == nil && id < 2*most {
			if send(id) != nil {
				break
			}
			id++
			synctest.Wait()
		}
		if id > most {
			t.Errorf("%d calls were taken from an end that does not read, want at most %d", id, most)
		}
		<-conn.Done()
		wantLimit(t, "Err()", conn.Err(), "QueueBytes")
		if got := ran.Load(); got > 32 {
			t.Errorf("%d handlers ran, want a few", got)
		}
	})
}

// The same fault in bytes: an answer that waits for room is not held encoded.
func TestSilentReaderHeap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := strings.Repeat("x", 64<<10)
		a, b := peer.Pipe()
		peertest.Start(t, b, &peer.Options{
			Handler: peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return big, nil }),
		})
		before := heap()
		for id := range 512 {
			if err := a.Write(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"m"}`, id)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		// Unbounded it would be 32 MiB. The bound is 1 MiB; the rest is for
		// goroutines and requests.
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("the heap grew by %d KiB with QueueBytes of 1 MiB", grown>>10)
		}
	})
}

// heap is what is in use, without what a sync.Pool keeps over two collections.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What is queued stays within QueueBytes, whoever wants to send, and the rest
// waits no longer than its contexts.
func TestStuckTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := peer.Pipe()
		const most = 256 << 10
		conn := peertest.Start(t, b, &peer.Options{Limits: peer.Limits{QueueBytes: most}})
		params := []string{strings.Repeat("x", 4<<10)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		var queued atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for {
					if err := conn.Notify(ctx, "m", params); err != nil {
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("Notify() = %v, want the end of the context", err)
						}
						return
					}
					queued.Add(1)
				}
			})
		}
		all.Wait()
		if got := time.Since(began); got != time.Second {
			t.Errorf("the last Notify returned after %v, want 1s", got)
		}
		if got := queued.Load() * 4 << 10; got == 0 || got > most {
			t.Errorf("%d bytes were queued, want at most %d", got, most)
		}
		if err := conn.Err(); err != nil {
			t.Errorf("Err() = %v, want nil: a caller's context ends no connection", err)
		}
	})
}

// Nothing is kept encoded while it waits for room.
func TestStuckTransportHoldsNothingEncoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := peer.Pipe()
		conn := peertest.Start(t, b, nil) // QueueBytes is 1 MiB
		params := []string{strings.Repeat("x", 256<<10)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := heap()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _ = conn.Notify(ctx, "m", params) })
		}
		synctest.Wait()
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("the heap grew by %d KiB while 100 notifications wait for 1 MiB of room", grown>>10)
		}
		cancel()
		all.Wait()
	})
}

// A reported fault: one bad message killed the link. A hundred within ten
// seconds are another matter.
func TestRefusedMessages(t *testing.T) {
	array := "[" + strings.Repeat("1,", 199) + "1]"
	for _, tc := range []struct {
		name  string
		text  string
		count int
		pause time.Duration
		ends  bool
	}{
		{"99 keep it", `1`, 99, 0, false},
		{"100 end it", `1`, 100, 0, true},
		{"100 of broken JSON end it", `{`, 100, 0, true},
		{"100 bad notifications end it", `{"jsonrpc":"2.0","method":"m","params":1}`, 100, 0, true},
		{"100 broken answers end it", `{"jsonrpc":"2.0","id":7,"result":1,"error":{}}`, 100, 0, true},
		{"100 just within ten seconds end it", `1`, 100, 101 * time.Millisecond, true},
		{"300 spread over more time", `1`, 300, 102 * time.Millisecond, false},
		{"an array counts once", array, 99, 0, false},
		{"100 arrays end it", array, 100, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Handler: playRegistry()})
				for i := range tc.count {
					if err := conn.Err(); err != nil {
						t.Fatalf("Err() = %v after %d messages", err, i)
					}
					raw.Send(tc.text)
					time.Sleep(tc.pause)
					synctest.Wait()
				}
				raw.Waiting() // the answers
				if !tc.ends {
					raw.Send(`{"jsonrpc":"2.0","id":"probe","method":"echo"}`)
					raw.Want(`{"jsonrpc":"2.0","id":"probe","result":null}`)
					return
				}
				wantClose(t, raw, 1008)
				<-conn.Done()
				var refused *peer.RefusedError
				if err := conn.Err(); !errors.As(err, &refused) || refused.Count != 100 {
					t.Errorf("Err() = %v, want a *RefusedError of 100", err)
				}
			})
		})
	}
}

// A message that is no UTF-8 says that the WebSocket below is broken
// (RFC 6455 section 8.1).
func TestInvalidUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		raw.Send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}")
		wantClose(t, raw, 1007)
		<-conn.Done()
		if conn.Err() == nil {
			t.Error("Err() = nil, want what was wrong")
		}
	})
}

// MessageBytes binds what leaves: it fails where it was made, and nothing of it
// is sent.
func TestOutgoingTooBig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := []string{strings.Repeat("x", 1024)}
		var reg peer.Registry
		reg.Handle("big", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return big, nil }))
		reg.Handle("bad", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
			data, _ := json.Marshal(big)
			return nil, &peer.Error{Code: 1, Message: "m", Data: data}
		}))
		reg.Handle("echo", gateOpen)
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg, Limits: peer.Limits{MessageBytes: 1024}})

		err := conn.Call(t.Context(), "m", big, nil)
		wantLimit(t, "Call()", err, "MessageBytes")
		var call *peer.CallError
		if !errors.As(err, &call) || call.Sent != pending.NotSent {
			t.Errorf("Call() = %v, want a *CallError that was not sent", err)
		}
		wantLimit(t, "Notify()", conn.Notify(t.Context(), "m", big), "MessageBytes")
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("%.60q left", got)
		}
		if got := conn.Stats().Pending; got != 0 {
			t.Errorf("Stats().Pending = %d, want 0", got)
		}

		// Exactly as long as allowed it leaves.
		head := len(`{"jsonrpc":"2.0","method":"m","params":[""]}`)
		if err := conn.Notify(t.Context(), "m", []string{strings.Repeat("x", 1024-head)}); err != nil {
			t.Errorf("Notify() of 1,024 bytes = %v, want nil", err)
		}
		if got := len(raw.Receive()); got != 1024 {
			t.Errorf("%d bytes arrived, want 1024", got)
		}
		wantLimit(t, "Notify() of 1,025 bytes", conn.Notify(t.Context(), "m", []string{strings.Repeat("x", 1025-head)}), "MessageBytes")

		const internal = `"error":{"code":-32603,"message":"internal error"}}`
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"big"}`)
		raw.Want(`{"jsonrpc":"2.0","id":1,` + internal)
		raw.Send(`{"jsonrpc":"2.0","id":2,"method":"bad"}`)
		raw.Want(`{"jsonrpc":"2.0","id":2,` + internal)
		raw.Send(`[{"jsonrpc":"2.0","id":3,"method":"big"},{"jsonrpc":"2.0","id":4,"method":"echo","params":[4]}]`)
		got := raw.Receive()
		for _, entry := range []string{`{"jsonrpc":"2.0","id":3,` + internal, `{"jsonrpc":"2.0","id":4,"result":[4]}`} {
			if !strings.Contains(got, entry) {
				t.Errorf("answer %s is without %s", got, entry)
			}
		}
	})
}

var gateOpen = peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) { return req.Params, nil })

// Answers that fit one by one but not together: some become errors, all are
// there, and the array is no longer than allowed.
func TestBatchAnswerTooBig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, &peer.Options{
			Limits: peer.Limits{MessageBytes: 1024},
			Handler: peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
				return strings.Repeat("x", 300), nil
			}),
		})
		var calls []string
		for id := range 5 {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, id))
		}
		raw.Send("[" + strings.Join(calls, ",") + "]")
		text := raw.Receive()
		var answers []struct {
			ID     int
			Result string
			Error  *struct{ Code int }
		}
		if err := json.Unmarshal([]byte(text), &answers); err != nil || len(answers) != 5 || len(text) > 1024 {
			t.Fatalf("%d answers in %d bytes (%v), want 5 in at most 1024", len(answers), len(text), err)
		}
		results := 0
		for _, a := range answers {
			if a.Error == nil {
				results++
			} else if a.Error.Code != -32603 {
				t.Errorf("error %d, want -32603", a.Error.Code)
			}
		}
		if results != 2 {
			t.Errorf("%d results, want the 2 that fit", results)
		}
	})
}

func TestIncomingTooBig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Handler: gateOpen, Limits: peer.Limits{MessageBytes: 1024}})
		raw.Send(callText("1", 1024))
		if got := raw.Receive(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":`) {
			t.Errorf("Receive() = %.60s, want a result: 1,024 bytes are allowed", got)
		}
		raw.Send(callText("2", 1025))
		wantClose(t, raw, 1009)
		<-conn.Done()
		wantLimit(t, "Err()", conn.Err(), "MessageBytes")
	})
}

func TestPendingBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Limits: peer.Limits{Pending: 2}})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if err := conn.Call(t.Context(), "m", nil, nil); err != nil {
					t.Errorf("Call() = %v, want nil", err)
				}
			})
		}
		synctest.Wait()
		err := conn.Call(t.Context(), "m", nil, nil)
		var call *peer.CallError
		if !errors.Is(err, pending.ErrFull) || !errors.As(err, &call) || call.Sent != pending.NotSent {
			t.Errorf("Call() = %v, want pending.ErrFull, not sent", err)
		}
		raw.Send(`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":2,"result":null}`)
		all.Wait()
		if got := conn.Stats().Pending; got != 0 {
			t.Errorf("Stats().Pending = %d, want 0", got)
		}
	})
}

// Two reported faults: a batch of four million ones, and eight megabytes of
// opening brackets, each took a process down.
func TestHostileTexts(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"ones", "[" + strings.Repeat("1,", 4_000_000) + "1]",
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the batch has too many items"}}`},
		{"brackets", strings.Repeat("[", 8<<20),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`},
		{"brackets that close", strings.Repeat("[", 4<<20) + strings.Repeat("]", 4<<20),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw, conn := peertest.Against(t, &peer.Options{Handler: playRegistry(), Limits: peer.Limits{MessageBytes: 16 << 20}})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			raw.Send(tc.text)
			raw.Want(tc.want)
			runtime.ReadMemStats(&after)
			// The text itself is copied a few times on its way through a Pipe.
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
				t.Errorf("%d MiB allocated, want at most 64", grown>>20)
			}
			raw.Send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
			raw.Want(`{"jsonrpc":"2.0","id":1,"result":null}`)
			if got := conn.Stats().Methods; len(got) != 1 {
				t.Errorf("Stats().Methods = %v, want echo alone", got)
			}
		})
	}
}

// fickle is a value that can be encoded once only.
type fickle struct {
	text string
	done *atomic.Bool
}

func (f fickle) MarshalJSON() ([]byte, error) {
	if f.done.Swap(true) {
		return nil, errors.New("not again")
	}
	return json.Marshal(map[string]string{"text": f.text})
}

// Params that cannot be encoded again after a wait for room give that room back.
func TestRoomIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peer.Pipe()
		conn := peertest.Start(t, b, &peer.Options{Limits: peer.Limits{QueueBytes: 4 << 10}})
		if err := conn.Notify(t.Context(), "fill", []string{strings.Repeat("x", 2<<10)}); err != nil {
			t.Fatal(err) // it is being written, and leaves room for 1 KiB
		}
		failed := make(chan error, 1)
		go func() {
			failed <- conn.Notify(t.Context(), "fickle", fickle{strings.Repeat("y", 2<<10), new(atomic.Bool)})
		}()
		synctest.Wait()
		raw := peertest.NewRaw(t, a)
		if err := <-failed; err == nil {
			t.Fatal("Notify() = nil, want the error of the second encoding: the test made it wait for no room")
		}
		done := make(chan error, 1)
		go func() { done <- conn.Notify(t.Context(), "all", []string{strings.Repeat("z", 3<<10)}) }()
		synctest.Wait()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Notify() = %v", err)
			}
		default:
			t.Error("Notify() waits for room that nobody holds")
		}
		raw.Receive()
	})
}

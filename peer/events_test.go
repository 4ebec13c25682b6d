package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// Each kind of event, by what brings it about n times; Lost has a test of its own.
func TestEventKinds(t *testing.T) {
	note := func(text string) func(*testing.T, *peertest.Raw, *peer.Conn, int) {
		return func(t *testing.T, raw *peertest.Raw, _ *peer.Conn, n int) {
			for range n {
				raw.Send(text)
			}
		}
	}
	// giveUp makes a call whose caller gives up at once.
	giveUp := func(t *testing.T, raw *peertest.Raw, c *peer.Conn) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := c.Call(ctx, "mine", nil, nil, peer.Note("why")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call() = %v, want the deadline", err)
		}
	}
	for _, tc := range []struct {
		kind   peer.EventKind
		method string
		cause  func(t *testing.T, raw *peertest.Raw, c *peer.Conn, n int)
	}{
		{peer.RefusedMessage, "_OTHER", note(`{"jsonrpc":"2.0","id":1}`)},
		{peer.RefusedNotification, "m", note(`{"jsonrpc":"2.0","method":"m","params":1}`)},
		{peer.RefusedNotification, "fail", note(`{"jsonrpc":"2.0","method":"fail"}`)},
		{peer.RefusedNotification, "_OTHER", note(`{"jsonrpc":"2.0","method":"made.up"}`)},
		{peer.UnknownResponse, "_OTHER", note(`{"jsonrpc":"2.0","id":"x","result":1}`)},
		{peer.UnknownResponse, "_OTHER", note(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`)},
		{peer.BrokenResponse, "_OTHER", note(`{"jsonrpc":"2.0","id":"x","error":1}`)},
		{peer.UnknownCancel, "_OTHER", note(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}}`)},
		{peer.LateResponse, "mine", func(t *testing.T, raw *peertest.Raw, c *peer.Conn, n int) {
			for i := range n {
				giveUp(t, raw, c)
				raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":1}`, i+1))
			}
		}},
		{peer.OverLimit, "m", func(t *testing.T, raw *peertest.Raw, c *peer.Conn, n int) {
			raw.Send(`{"jsonrpc":"2.0","id":"a","method":"m"}`, `{"jsonrpc":"2.0","id":"b","method":"m"}`)
			for range n {
				raw.Send(`{"jsonrpc":"2.0","id":"c","method":"m"}`)
			}
		}},
		{peer.DroppedAnswer, "m", func(t *testing.T, raw *peertest.Raw, c *peer.Conn, n int) {
			for i := range n {
				raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, i))
			}
			raw.Close(nil)
		}},
		{peer.OrderWait, "m", func(t *testing.T, raw *peertest.Raw, c *peer.Conn, n int) {
			raw.Send(`{"jsonrpc":"2.0","method":"m"}`)
			for i := range n {
				raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo"}`, i))
			}
			time.Sleep(6 * time.Second)
		}},
		{peer.ReservedCode, "reserved", func(t *testing.T, raw *peertest.Raw, c *peer.Conn, n int) {
			for range n {
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"reserved"}`)
				raw.Receive()
			}
		}},
	} {
		t.Run(fmt.Sprintf("%v %s", tc.kind, tc.method), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 2
				var log textLog
				var events eventList
				reg := playRegistry()
				reg.Handle("m", make(gate))
				reg.Handle("reserved", returning(nil, &peer.Error{Code: -32000}))
				raw, conn := peertest.Against(t, &peer.Options{
					Handler: reg, Logger: log.logger(), Events: events.add, Limits: peer.Limits{InFlight: n},
				})
				tc.cause(t, raw, conn, n)
				synctest.Wait()
				want := n
				if tc.kind == peer.ReservedCode {
					want = 1 // once for each code
				}
				if got := conn.Stats().Events; got[tc.kind] != uint64(want) || len(got) != 1 {
					t.Errorf("Stats().Events = %v, want %d of %v alone", got, want, tc.kind)
				}
				got := events.of(tc.kind)
				if len(got) != want {
					t.Fatalf("Options.Events got %v, want %d", got, want)
				}
				for _, ev := range got {
					if ev.Method != tc.method {
						t.Errorf("event of method %q, want %q", ev.Method, tc.method)
					}
				}
				if late := tc.kind == peer.LateResponse; late && (got[0].Note != "why" || got[0].After != time.Millisecond) {
					t.Errorf("event %+v, want the note and the latency of the call", got[0])
				}
				// One line for a kind and second; the next one says how many were left out.
				name := `msg="duet: ` + tc.kind.String() + `"`
				if got := log.lines(name); len(got) != 1 || strings.Contains(got[0], "suppressed") {
					t.Errorf("logged %q, want one line", got)
				}
			})
		})
	}
}

// The second line of a kind comes a second later and tells how many are missing.
func TestEventsSuppressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log textLog
		raw, _ := peertest.Against(t, &peer.Options{Logger: log.logger()})
		stray := `{"jsonrpc":"2.0","id":"x","result":1}`
		for range 5 {
			raw.Send(stray)
		}
		raw.Send(`{"jsonrpc":"2.0","method":"made.up"}`) // another kind has its own line
		time.Sleep(time.Second)
		raw.Send(stray)
		synctest.Wait()
		got := log.lines("duet: unknown response")
		if len(got) != 2 || !strings.Contains(got[1], "suppressed=4") {
			t.Errorf("logged %q, want two lines, the second with suppressed=4", got)
		}
		if got := log.lines("duet: refused notification"); len(got) != 1 {
			t.Errorf("logged %q, want one line", got)
		}
	})
}

// A function that does not return holds up nobody; what is too much for it is
// counted as lost, once it takes events again it is told so.
func TestEventsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var events eventList
		raw, conn := peertest.Against(t, &peer.Options{Handler: gateOpen, Events: func(ev peer.Event) {
			<-hold
			events.add(ev)
		}})
		const sent = 1000
		for range sent {
			raw.Send(`{"jsonrpc":"2.0","id":"x","result":1}`)
		}
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		raw.Want(`{"jsonrpc":"2.0","id":1,"result":null}`)
		synctest.Wait()
		stats := conn.Stats().Events
		// One batch of them is with the function, 256 wait.
		if got := stats[peer.Lost]; stats[peer.UnknownResponse] != sent || got < sent-2*256 || got > sent-256 {
			t.Errorf("Stats().Events = %v, want %d unknown and about %d lost", stats, sent, sent-256)
		}
		close(hold)
		synctest.Wait()
		if got, want := len(events.of(peer.UnknownResponse)), sent-int(stats[peer.Lost]); got != want {
			t.Errorf("%d events were handed over, want %d", got, want)
		}
		// It is told once for each time that it took what was waiting.
		if got := len(events.of(peer.Lost)); got != 1 && got != 2 {
			t.Errorf("%d events of kind Lost were handed over, want 1 or 2", got)
		}
	})
}

func TestEventsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log textLog
		var got atomic.Int64
		raw, conn := peertest.Against(t, &peer.Options{Logger: log.logger(), Events: func(peer.Event) {
			got.Add(1)
			panic("from Events")
		}})
		for range 3 {
			raw.Send(`{"jsonrpc":"2.0","id":"x","result":1}`)
			synctest.Wait()
		}
		if got.Load() != 3 || conn.Err() != nil {
			t.Errorf("%d events were handed over, Err() = %v, want 3 and nil", got.Load(), conn.Err())
		}
		if lines := log.lines("from Events"); len(lines) == 0 || !strings.Contains(lines[0], "events_test.go") {
			t.Errorf("logged %q, want the panic with its stack", lines)
		}
	})
}

// callingLog logs over a connection, as a logger that ships lines elsewhere does.
type callingLog struct {
	slog.Handler
	conn  *atomic.Pointer[peer.Conn]
	lines *atomic.Int64
}

func (l callingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l callingLog) Handle(_ context.Context, r slog.Record) error {
	l.lines.Add(1)
	c := l.conn.Load()
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Notify(ctx, "log", []string{r.Message}); err != nil {
		return err
	}
	return c.Call(ctx, "log", []string{r.Message}, nil)
}

// A reported fault: a logger that logs over the same connection met a lock.
func TestLoggerUsesConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := callingLog{slog.DiscardHandler, new(atomic.Pointer[peer.Conn]), new(atomic.Int64)}
		var taken atomic.Int64
		sink := peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { taken.Add(1); return true, nil })
		var reg peer.Registry
		reg.Handle("panic", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { panic("p") }))
		reg.Handle("plain", returning(nil, errors.New("plain")))
		reg.Handle("slow", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { time.Sleep(10 * time.Second); return nil, nil }))
		reg.Handle("reserved", returning(nil, &peer.Error{Code: -32000}))
		local, remote := peertest.Pair(t, &peer.Options{Handler: &reg, Logger: slog.New(log)}, &peer.Options{Handler: sink})
		log.conn.Store(local)
		for _, m := range []string{"panic", "plain", "reserved"} {
			if err := remote.Call(t.Context(), m, nil, nil); err == nil {
				t.Errorf("Call(%s) = nil, want an error", m)
			}
			if err := remote.Notify(t.Context(), m, nil); err != nil {
				t.Errorf("Notify(%s) = %v", m, err)
			}
		}
		if err := remote.Notify(t.Context(), "slow", nil); err != nil {
			t.Error(err)
		}
		_ = remote.Call(t.Context(), "unknown", nil, nil) // waits behind slow
		time.Sleep(time.Minute)
		if n := log.lines.Load(); n < 6 || taken.Load() != 2*n {
			t.Errorf("%d lines were logged, %d messages of them arrived, want twice as many", n, taken.Load())
		}
		_ = local.Close()
		select {
		case <-local.Done():
		case <-time.After(time.Minute):
			t.Error("the connection does not end")
		}
	})
}

// Names the other end makes up leave one entry.
func TestMadeUpMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log textLog
		raw, conn := peertest.Against(t, &peer.Options{Handler: playRegistry(), Logger: log.logger()})
		for i := range 1000 {
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"made.up.%d"}`, i, i),
				fmt.Sprintf(`{"jsonrpc":"2.0","method":"made.up.%d"}`, i))
		}
		synctest.Wait()
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		for raw.Receive() != `{"jsonrpc":"2.0","id":1,"result":null}` {
		}
		got := conn.Stats().Methods
		want := map[string]peer.MethodStats{
			"_OTHER": {Calls: 1000, Notifications: 1000, Errors: 2000},
			"echo":   {Calls: 1},
		}
		if !maps.Equal(got, want) {
			t.Errorf("Stats().Methods = %v, want %v", got, want)
		}
		if strings.Contains(log.String(), "made.up") {
			t.Errorf("the log names what the other end made up: %s", log.lines("made.up")[0])
		}
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Handler: playRegistry()})
		texts := []string{`{"jsonrpc":"2.0","id":1,"method":"fail"}`, `{"jsonrpc":"2.0","method":"fail"}`, `[{"jsonrpc":"2.0","id":2,"method":"echo"},{"jsonrpc":"2.0","method":"echo"}]`}
		bytes := 0
		for _, text := range texts {
			raw.Send(text)
			bytes += len(text)
		}
		if err := conn.Notify(t.Context(), "n", nil); err != nil {
			t.Fatal(err)
		}
		go func() { _ = conn.Call(t.Context(), "c", nil, nil) }()
		synctest.Wait()
		got := conn.Stats()
		want := map[string]peer.MethodStats{"fail": {1, 1, 2}, "echo": {1, 1, 0}}
		if got.ReceivedMessages != 3 || got.ReceivedBytes != uint64(bytes) || !maps.Equal(got.Methods, want) {
			t.Errorf("Stats() = %+v, want 3 messages of %d bytes, and %v", got, bytes, want)
		}
		sent := len(`{"jsonrpc":"2.0","method":"n"}`) + len(`{"jsonrpc":"2.0","id":1,"method":"c"}`)
		if got.SentMessages != 2 || got.SentBytes != uint64(sent) || got.Pending != 1 {
			t.Errorf("Stats() = %+v, want 2 messages of %d bytes sent and 1 pending", got, sent)
		}
	})
}

// Nothing of what is said over the connection stands in the log, whatever
// happens: params, results and error data may be anybody's secrets.
func TestNothingSecretIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "S3CRET"
		var log textLog
		data := json.RawMessage(`{"` + secret + `":"` + secret + `"}`)
		var reg peer.Registry
		reg.Handle("echo", gateOpen)
		reg.Handle("hold", make(gate))
		reg.Handle("error", returning(nil, &peer.Error{Code: 5, Message: "m", Data: data}))
		reg.Handle("reserved", returning(nil, &peer.Error{Code: -32000, Message: "m", Data: data}))
		reg.Handle("bad data", returning(nil, &peer.Error{Code: 5, Message: "m", Data: data[:9]}))
		reg.Handle("bad raw", returning(json.RawMessage(data[:9]), nil))
		reg.Handle("bad value", returning([]any{secret, make(chan int)}, nil))
		reg.Handle("big", returning(strings.Repeat(secret, 1000), nil))
		reg.Handle("down", peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
			return nil, req.Conn.Call(ctx, "down", req.Params, nil)
		}))
		peer.Method[manyParams, bool]("typed").Handle(&reg, func(context.Context, manyParams) (bool, error) { return true, nil })
		raw, conn := peertest.Against(t, &peer.Options{
			Handler: &reg, Logger: log.logger(), Limits: peer.Limits{MessageBytes: 4096, InFlight: 20, Notifications: 20},
		})
		params := `,"params":{"number":"` + secret + `","` + secret + `":1}`
		id := 0
		for _, m := range slices.Sorted(maps.Keys(map[string]bool{"echo": true, "hold": true, "error": true, "reserved": true,
			"bad data": true, "bad raw": true, "bad value": true, "big": true, "down": true, "typed": true, secret: true})) {
			id++
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, id, m, params))
			if m != "hold" && m != "down" {
				raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q%s}`, m, params))
			}
			synctest.Wait()
			time.Sleep(2 * time.Second) // each kind of event has its line
		}
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"m","data":{"` + secret + `":1}}}`, // answers "down"
			`{"jsonrpc":"2.0","id":77,"error":{"code":5,"message":"` + secret + `","data":"` + secret + `"}}`,
			`{"jsonrpc":"2.0","id":"` + secret + `","result":"` + secret + `"}`,
			`{"jsonrpc":"2.0","id":1,"error":"` + secret + `"}`,
			`{"jsonrpc":"2.0","method":"echo","params":"` + secret + `"}`,
			`{"jsonrpc":"2.0","` + secret + `":1,"` + secret + `":2,"id":1,"method":"echo"}`,
			`{"jsonrpc":"` + secret + `","id":"` + secret + `","method":"` + secret + `"}`,
			`["` + secret + `"]`, `"` + secret + ``, `{"` + secret + `":`,
			`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"` + secret + `"}}`,
		} {
			raw.Send(text)
			time.Sleep(2 * time.Second)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_ = conn.Call(ctx, "mine", []string{secret}, nil)
		cancel()
		_ = conn.Call(t.Context(), "mine", []any{secret, make(chan int)}, nil)
		_ = conn.Notify(t.Context(), "mine", json.RawMessage(`["`+secret))
		raw.Send(`{"jsonrpc":"2.0","id":2,"result":"` + secret + `"}`)
		time.Sleep(2 * time.Second)
		raw.Send(`{"jsonrpc":"2.0","id":"big","method":"echo","params":["` + strings.Repeat(secret, 1000) + `"]}`)
		wantClose(t, raw, 1009)
		<-conn.Done()
		if lines := log.lines(secret); len(lines) > 0 {
			t.Errorf("the log has\n%s", strings.Join(lines, "\n"))
		}
		if n := len(log.lines("duet:")); n < 12 {
			t.Errorf("only %d lines were logged; the session was not noisy", n)
		}
	})
}

// The errors of a JSON encoder and decoder may quote what they choke on.
func TestJSONErrorsAreNotLogged(t *testing.T) {
	const secret, digits = "S3CRET", "9876543210"
	type outcome func(ctx context.Context, c *peer.Conn) (any, error)
	into := func(v any) outcome {
		return func(ctx context.Context, c *peer.Conn) (any, error) { return nil, c.Call(ctx, "down", nil, v) }
	}
	for _, tc := range []struct {
		name   string
		result string // of the handler's own call
		f      outcome
	}{
		{"string for number", `"` + secret + `"`, into(new(int))},
		{"number for string", digits, into(new(string))},
		{"number out of range", digits, into(new(int8))},
		{"no time", `"` + secret + `"`, into(new(time.Time))},
		{"own result", "1", func(context.Context, *peer.Conn) (any, error) {
			return map[string]any{secret: make(chan int)}, nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log textLog
				raw, _ := peertest.Against(t, &peer.Options{
					Logger: log.logger(),
					Handler: peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
						return tc.f(ctx, req.Conn)
					}),
				})
				raw.Send(`{"jsonrpc":"2.0","id":"up","method":"m"}`)
				synctest.Wait()
				raw.Send(`{"jsonrpc":"2.0","id":1,"result":` + tc.result + `}`)
				synctest.Wait()
				if got := log.lines("handler failed"); len(got) != 1 || strings.Contains(got[0], secret) || strings.Contains(got[0], digits) {
					t.Errorf("logged %q, want one line without %s and %s", got, secret, digits)
				}
			})
		})
	}
}

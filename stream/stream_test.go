package stream_test

import (
	"context"
	"encoding/json"
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

type ask struct {
	N int `json:"n"`
}

const run = stream.Method[ask, int, string]("run")

// dialects are the forms that items have on the wire.
func dialects() map[string]*peer.Profile {
	return map[string]*peer.Profile{
		"base": {},
		"flat": {Progress: peer.ProgressDialect{Method: "notifications/progress", Token: "progressToken", Flat: true,
			Tokens: []string{"/_meta/progressToken"}, Items: []string{"/_meta/progressToken"}}},
		"lsp": {Progress: peer.ProgressDialect{WorkDone: true, Tokens: []string{"/workDoneToken"}, Items: []string{"/partialResultToken"}}},
	}
}

// counting serves run: items from 1 to n, then "done".
func counting(p *peer.Profile) *peer.Options {
	var reg peer.Registry
	run.Handle(&reg, func(ctx context.Context, in ask, send func(int) error) (string, error) {
		for i := range in.N {
			if err := send(i + 1); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	return &peer.Options{Handler: &reg, Profile: p}
}

// collect takes all items of s and returns them with the error at the end.
func collect[Item, Out any](s *stream.Stream[Item, Out]) (items []Item, err error) {
	for item, e := range s.All() {
		if e != nil {
			return items, e
		}
		items = append(items, item)
	}
	return items, nil
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// Every item arrives once and in order, more than any window holds, in every dialect;
// together with progress, and with several streams at a time.
func TestStream(t *testing.T) {
	for name, p := range dialects() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := peertest.Pair(t, &peer.Options{Profile: p}, counting(p))
				const n = 1000
				s := run.Call(t.Context(), a, ask{n}, stream.Calling(peer.OnProgress(func(peer.Progress) { t.Error("an item is no progress") })))
				other := run.Call(t.Context(), a, ask{n})
				items, err := collect(s)
				out, failure := s.Result()
				if !slices.Equal(items, upTo(n)) || err != nil || out != "done" || failure != nil {
					t.Errorf("%d items, %v; %q, %v", len(items), err, out, failure)
				}
				if out, err := other.Result(); out != "done" || err != nil {
					t.Errorf("the items of another dropped: %q, %v", out, err)
				}
				if items, err := collect(other); len(items) > 0 || !errors.Is(err, stream.ErrEnded) {
					t.Errorf("All after Result: %v, %v", items, err)
				}
				for _, c := range []*peer.Conn{a, b} {
					for _, kind := range []peer.EventKind{peer.UnknownToken, peer.RefusedNotification} {
						// Credit for the last items finds the call answered.
						if n := c.Stats().Events[kind]; kind == peer.RefusedNotification && n > 0 || n > 4 {
							t.Errorf("%d times %v", n, kind)
						}
					}
				}
			})
		})
	}
}

// A stream without items, and a window of one.
func TestSmallStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := peertest.Pair(t, nil, counting(nil))
		for _, n := range []int{0, 1, 2, 65} {
			s := run.Call(t.Context(), a, ask{n}, stream.Window(1, 1))
			items, err := collect(s)
			if out, failure := s.Result(); !slices.Equal(items, upTo(n)) || err != nil || out != "done" || failure != nil {
				t.Errorf("%d: %v, %v; %q, %v", n, items, err, out, failure)
			}
		}
	})
}

func request(id int, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"run","params":%s}`, id, params)
}

func item(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

func answer(id int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

func credit(token any, items, bytes int) string {
	return item("$/stream/credit", fmt.Sprintf(`{"token":%v,"items":%d,"bytes":%d}`, token, items, bytes))
}

// What a handler sends, to an end that knows nothing but JSON-RPC and where its dialect
// has tokens.
func TestItemsByHand(t *testing.T) {
	for _, test := range []struct {
		profile, params string
		items           []string // method and params
	}{
		{"base", `{"n":2,"_meta":{"progressToken":"t"}}`, []string{`$/progress {"token":"t","value":1}`, `$/progress {"token":"t","value":2}`}},
		{"base", `{"n":1,"partialResultToken":7.0}`, []string{`$/progress {"token":7.0,"value":1}`}},
		{"base", `{"n":1,"workDoneToken":"t"}`, []string{`$/progress {"token":"t","value":1}`}},
		{"lsp", `{"n":1,"partialResultToken":7}`, []string{`$/progress {"token":7,"value":1}`}},
		{"base", `{"n":1,"_meta":{"io.github.duetrpc/stream":{"token":"s"},"progressToken":"t"}}`, []string{`$/progress {"token":"s","value":1}`}},
		{"flat", `{"n":2,"_meta":{"progressToken":7,"io.github.duetrpc/stream":{}}}`, []string{
			`notifications/progress {"progressToken":7,"progress":1,"_meta":{"io.github.duetrpc/stream":1}}`,
			`notifications/progress {"progressToken":7,"progress":2,"_meta":{"io.github.duetrpc/stream":2}}`}},
		{"flat", `{"n":2,"_meta":{"progressToken":7}}`, nil}, // not offered
		{"lsp", `{"n":2,"_meta":{"progressToken":7}}`, nil},
		{"lsp", `{"n":2,"partialResultToken":null}`, nil},
		{"base", `{"n":2}`, nil},
		{"base", `{"n":2,"_meta":{"io.github.duetrpc/stream":{"token":{}}}}`, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			raw, _ := peertest.Against(t, counting(dialects()[test.profile]))
			raw.Send(request(1, test.params))
			if test.items == nil {
				raw.Want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: no token for the items of the stream"}}`)
				return
			}
			for _, want := range test.items {
				method, params, _ := strings.Cut(want, " ")
				raw.Want(item(method, params))
			}
			raw.Want(answer(1, `"done"`))
		})
	}
}

// Items leave as there is credit for them, in items and in bytes; one that is larger
// than the window leaves alone.
func TestCreditByHand(t *testing.T) {
	text := stream.Method[ask, string, string]("run")
	for _, test := range []struct {
		name   string
		items  []int // lengths, quotes included
		offer  string
		credit [][2]int // one after the other
		want   []int    // how many items have left, before any credit and after each
	}{
		{"items", []int{3, 3, 3, 3}, `"items":1,"bytes":100`, [][2]int{{2, 103}, {4, 109}}, []int{1, 2, 4}},
		{"bytes", []int{40, 40, 40, 40}, `"items":9,"bytes":100`, [][2]int{{10, 139}, {10, 140}, {11, 180}}, []int{2, 3, 3, 4}},
		{"larger than the window", []int{40, 500, 3}, `"items":9,"bytes":100`, [][2]int{{9, 139}, {10, 139}, {10, 140}, {11, 542}, {11, 543}}, []int{1, 1, 1, 2, 2, 3}},
		{"first", []int{500, 3}, `"items":1,"bytes":1`, [][2]int{{2, 500}, {2, 501}}, []int{1, 1, 2}},
		{"less than before", []int{3, 3}, `"items":1,"bytes":100`, [][2]int{{0, 0}, {1, 100}, {2, 103}}, []int{1, 1, 1, 2}},
		{"nothing yet", []int{3, 3}, `"items":0,"bytes":0`, [][2]int{{1, 100}, {2, 103}}, []int{0, 1, 2}},
		{"no window", []int{3, 3, 3}, `"items":1`, nil, []int{3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reg peer.Registry
				text.Handle(&reg, func(_ context.Context, _ ask, send func(string) error) (string, error) {
					for _, n := range test.items {
						if err := send(strings.Repeat("x", n-2)); err != nil {
							return "", err
						}
					}
					return "done", nil
				})
				raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
				raw.Send(request(1, `{"_meta":{"io.github.duetrpc/stream":{"token":1,`+test.offer+`}}}`))
				left := 0
				for i, want := range test.want {
					if i > 0 {
						raw.Send(credit(1, test.credit[i-1][0], test.credit[i-1][1]))
					}
					synctest.Wait()
					for _, m := range raw.Waiting() {
						if strings.Contains(m, "$/progress") {
							left++
						}
					}
					if left != want {
						t.Fatalf("%d items after %d credits, want %d", left, i, want)
					}
				}
			})
		})
	}
}

// Credit that is none: text, fractions, negative, beyond everything. The stream waits,
// and nothing breaks.
func TestHostileCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, counting(nil))
		raw.Send(request(1, `{"n":3,"_meta":{"io.github.duetrpc/stream":{"token":1,"items":1,"bytes":9}}}`))
		raw.Want(item("$/progress", `{"token":1,"value":1}`))
		for _, params := range []string{
			`{"token":1,"items":"9","bytes":9}`, `{"token":1,"items":-1,"bytes":-9}`, `{"token":1,"items":1.5,"bytes":99}`,
			`{"token":1,"items":9}`, `{"token":1}`, `{"token":1,"items":1e300,"bytes":1e300}`, `{"token":1,"items":9007199254740993,"bytes":1}`,
			`{"token":2,"items":9,"bytes":99}`, `{"token":"1","items":9,"bytes":99}`, `{"items":9,"bytes":99}`, `[1,9,99]`, `{"token":null,"items":9,"bytes":99}`,
			`{"token":1,"items":{},"bytes":[]}`,
		} {
			raw.Send(item("$/stream/credit", params))
		}
		raw.Send(item("$/stream/credit", `{}`), `{"jsonrpc":"2.0","method":"$/stream/credit"}`)
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 || conn.Err() != nil {
			t.Fatalf("left %q, %v", got, conn.Err())
		}
		raw.Send(credit(1, 1<<53, 1<<53))
		raw.Want(item("$/progress", `{"token":1,"value":2}`), item("$/progress", `{"token":1,"value":3}`), answer(1, `"done"`))
	})
}

// Two calls in flight with one token: the second is refused, and the first goes on.
func TestTokenInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, counting(nil))
		offer := `{"n":2,"_meta":{"io.github.duetrpc/stream":{"token":%s,"items":1,"bytes":9}}}`
		raw.Send(request(1, fmt.Sprintf(offer, "7")))
		raw.Want(item("$/progress", `{"token":7,"value":1}`))
		raw.Send(request(2, fmt.Sprintf(offer, "7.0")))
		raw.Want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"invalid params: the token is in use by another stream"}}`)
		raw.Send(request(3, fmt.Sprintf(offer, `"7"`)))
		raw.Want(item("$/progress", `{"token":"7","value":1}`))
		raw.Send(credit(7, 2, 10), credit(`"7"`, 2, 10))
		var got []string
		for range 4 {
			got = append(got, raw.Receive())
		}
		slices.Sort(got)
		want := []string{answer(1, `"done"`), answer(3, `"done"`), item("$/progress", `{"token":"7","value":2}`), item("$/progress", `{"token":7,"value":2}`)}
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
		raw.Send(request(4, fmt.Sprintf(offer, "7"))) // free again
		raw.Want(item("$/progress", `{"token":7,"value":1}`))
	})
}

// What a caller sends: the offer where its dialect has it, and credit as items are used.
func TestCallByHand(t *testing.T) {
	for name, want := range map[string]string{
		"base": `{"n":5,"_meta":{"io.github.duetrpc/stream":{"token":1,"items":4,"bytes":1000}}}`,
		"flat": `{"n":5,"_meta":{"io.github.duetrpc/stream":{"token":1,"items":4,"bytes":1000}}}`,
		"lsp":  `{"n":5,"partialResultToken":1,"_meta":{"io.github.duetrpc/stream":{"token":1,"items":4,"bytes":1000}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Profile: dialects()[name]})
				s := run.Call(t.Context(), conn, ask{5}, stream.Window(4, 1000))
				next := make(chan struct{})
				var got []int
				finished := make(chan error, 1)
				go func() {
					for item, err := range s.All() {
						if err != nil {
							finished <- err
							return
						}
						got = append(got, item)
						<-next
					}
					finished <- nil
				}()
				raw.Want(request(1, want))
				send := func(values ...string) {
					for i, v := range values {
						if name == "flat" {
							raw.Send(item("notifications/progress", fmt.Sprintf(`{"progressToken":1,"progress":%d,"_meta":{"io.github.duetrpc/stream":%s}}`, i+1, v)))
						} else {
							raw.Send(item("$/progress", `{"token":1,"value":`+v+`}`))
						}
					}
				}
				send("10", "200", "3", "4")
				synctest.Wait()
				if got := raw.Waiting(); len(got) > 0 {
					t.Errorf("sent %q before an item was used", got)
				}
				next <- struct{}{}
				synctest.Wait()
				if got := raw.Waiting(); len(got) > 0 {
					t.Errorf("sent %q after one of four", got)
				}
				next <- struct{}{}
				raw.Want(credit(1, 6, 1005)) // half the window at once
				next <- struct{}{}
				next <- struct{}{}
				raw.Want(credit(1, 8, 1007))
				send("5")
				began := time.Now()
				next <- struct{}{}
				raw.Want(credit(1, 9, 1008)) // and the rest when nothing happens
				if got := time.Since(began); got != 50*time.Millisecond {
					t.Errorf("credit after %v, want 50ms", got)
				}
				raw.Send(answer(1, `"ok"`))
				if err := <-finished; err != nil || !slices.Equal(got, []int{10, 200, 3, 4, 5}) {
					t.Errorf("items %v, %v", got, err)
				}
				if out, err := s.Result(); out != "ok" || err != nil {
					t.Errorf("Result() = %q, %v", out, err)
				}
			})
		})
	}
}

// A reader that does not read holds up its own stream and no other, nor any call.
func TestSlowReaderHoldsUpItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := counting(nil)
		opts.Limits.QueueBytes = 4 << 10
		a, b := peertest.Pair(t, &peer.Options{Limits: peer.Limits{Notifications: 8}}, opts)
		slow := run.Call(t.Context(), a, ask{5000})
		synctest.Wait() // its window is full, and nobody takes anything
		quick := run.Call(t.Context(), a, ask{5000})
		if items, err := collect(quick); len(items) != 5000 || err != nil {
			t.Errorf("beside a slow one: %d items, %v", len(items), err)
		}
		if got := a.Stats().ReceivedMessages; got > 5000+64+2 {
			t.Errorf("%d messages arrived: the slow one went on", got)
		}
		if b.Stats().InFlight != 1 {
			t.Errorf("%d calls in flight, want the slow one", b.Stats().InFlight)
		}
		if items, err := collect(slow); len(items) != 5000 || err != nil {
			t.Errorf("the slow one at last: %d items, %v", len(items), err)
		}
	})
}

// Credit passes notifications whose handler waits, also one that sends the items
// itself: it cannot keep its own credit away.
func TestCreditPassesHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := counting(nil)
		reg := opts.Handler.(*peer.Registry)
		release := make(chan struct{})
		reg.HandleNotification("block", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
			<-release
			return nil, nil
		}))
		a, _ := peertest.Pair(t, nil, opts)
		s := run.Call(t.Context(), a, ask{1000})
		synctest.Wait()
		if err := a.Notify(t.Context(), "block", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if items, err := collect(s); len(items) != 1000 || err != nil {
			t.Errorf("%d items, %v", len(items), err)
		}
		close(release)
	})
	// Each end streams to the other from the handler of a call that the other made in the
	// handler of a notification.
	synctest.Test(t, func(t *testing.T) {
		var left, right peer.Registry
		all := counting(nil).Handler.(*peer.Registry)
		done := make(chan error, 2)
		for _, reg := range []*peer.Registry{&left, &right} {
			reg.Handle("run", peer.HandlerFunc(all.ServeRPC))
			reg.HandleNotification("go", peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
				items, err := collect(run.Call(ctx, req.Conn, ask{1000}))
				if err == nil && len(items) != 1000 {
					err = fmt.Errorf("%d items", len(items))
				}
				done <- err
				return nil, nil
			}))
		}
		a, b := peertest.Pair(t, &peer.Options{Handler: &left}, &peer.Options{Handler: &right})
		for _, c := range []*peer.Conn{a, b} {
			if err := c.Notify(t.Context(), "go", nil); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// Leaving the loop cancels the call, with a reason, and the result says so.
func TestBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := make(chan error, 2)
		var reg peer.Registry
		run.Handle(&reg, func(ctx context.Context, _ ask, send func(int) error) (string, error) {
			for i := 0; ; i++ {
				if err := send(i); err != nil {
					cause <- context.Cause(ctx)
					return "", err
				}
			}
		})
		p := &peer.Profile{Cancel: peer.Cancel{Reason: "reason"}}
		a, b := peertest.Pair(t, &peer.Options{Profile: p}, &peer.Options{Handler: &reg, Profile: p})
		s := run.Call(t.Context(), a, ask{})
		for item, err := range s.All() {
			if err != nil || item == 3 {
				break
			}
		}
		var cancel *peer.CancelError
		if got := <-cause; !errors.As(got, &cancel) || cancel.Reason != stream.ErrStopped.Error() {
			t.Errorf("the handler's cause is %v", got)
		}
		if out, err := s.Result(); out != "" || !errors.Is(err, stream.ErrStopped) || errors.Is(err, context.Canceled) {
			t.Errorf("Result() = %q, %v, want ErrStopped", out, err)
		}
		synctest.Wait()
		if a.Stats().Pending != 0 || b.Stats().InFlight != 0 {
			t.Error("something is left of the call")
		}
		// A panic in the loop is a way to leave it.
		s = run.Call(t.Context(), a, ask{})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			for range s.All() {
				panic("in the loop")
			}
		}()
		<-cause
		if _, err := s.Result(); !errors.Is(err, stream.ErrStopped) {
			t.Errorf("Result() = %v after a panic", err)
		}
	})
}

// How a stream ends that does not end well: what arrived is yielded, then why.
func TestOutcomes(t *testing.T) {
	text := stream.Method[ask, string, string]("run")
	boom := &peer.Error{Code: 1234, Message: "boom"}
	for _, test := range []struct {
		name   string
		then   func(raw *peertest.Raw, conn *peer.Conn, cancel context.CancelFunc)
		items  int
		want   []error
		unlike []error
	}{
		{"an error after items", func(raw *peertest.Raw, _ *peer.Conn, _ context.CancelFunc) {
			raw.Send(`{"jsonrpc":"2.0","id":1,"error":{"code":1234,"message":"boom"}}`)
		}, 2, []error{boom}, []error{context.Canceled}},
		{"connection closed here", func(_ *peertest.Raw, conn *peer.Conn, _ context.CancelFunc) { _ = conn.Close() }, 2, []error{peer.ErrClosed}, []error{boom}},
		{"connection lost", func(raw *peertest.Raw, _ *peer.Conn, _ context.CancelFunc) { raw.Close(errors.New("cut")) }, 2, nil, []error{boom, context.Canceled, peer.ErrClosed}},
		{"context", func(_ *peertest.Raw, _ *peer.Conn, cancel context.CancelFunc) { cancel() }, 2, []error{context.Canceled}, []error{stream.ErrStopped}},
		{"an item of another type", func(raw *peertest.Raw, _ *peer.Conn, _ context.CancelFunc) {
			raw.Send(item("$/progress", `{"token":1,"value":7}`), item("$/progress", `{"token":1,"value":"more"}`))
		}, 2, nil, []error{context.Canceled, stream.ErrStopped}},
		{"too many for the bound", func(raw *peertest.Raw, _ *peer.Conn, _ context.CancelFunc) {
			for range 20 {
				raw.Send(item("$/progress", `{"token":1,"value":"x"}`))
			}
		}, 10, []error{stream.ErrSlowConsumer}, []error{context.Canceled}},
		{"too many, and the answer", func(raw *peertest.Raw, _ *peer.Conn, _ context.CancelFunc) {
			for range 20 {
				raw.Send(item("$/progress", `{"token":1,"value":"x"}`))
			}
			raw.Send(answer(1, `"ok"`))
		}, 10, []error{stream.ErrSlowConsumer}, nil},
		{"too many bytes", func(raw *peertest.Raw, _ *peer.Conn, _ context.CancelFunc) {
			for range 5 {
				raw.Send(item("$/progress", `{"token":1,"value":"`+strings.Repeat("x", 300)+`"}`))
			}
		}, 5, []error{stream.ErrSlowConsumer}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := text.Call(ctx, conn, ask{}, stream.Window(4, 1000), stream.Buffer(10, 1000))
				raw.Receive()
				raw.Send(item("$/progress", `{"token":1,"value":"a"}`), item("$/progress", `{"token":1,"value":"b"}`))
				synctest.Wait()
				test.then(raw, conn, cancel)
				synctest.Wait()
				items, err := collect(s)
				_, again := s.Result()
				if len(items) != test.items || err == nil || err != again && err.Error() != again.Error() {
					t.Errorf("%d items, then %v and %v, want %d and one error", len(items), err, again, test.items)
				}
				for _, want := range test.want {
					if !errors.Is(err, want) {
						t.Errorf("%v is not %v", err, want)
					}
				}
				for _, other := range test.unlike {
					if errors.Is(err, other) {
						t.Errorf("%v is %v", err, other)
					}
				}
				if broken := new(*stream.ItemError); errors.As(err, broken) != (test.name == "an item of another type") {
					t.Errorf("%v is an *ItemError: %t", err, errors.As(err, broken))
				}
			})
		})
	}
}

// Where there is no place for items the call is not made.
func TestNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		array := stream.Method[[]int, int, string]("run")
		raw, conn := peertest.Against(t, nil)
		_, err := array.Call(t.Context(), conn, []int{1}).Result()
		none, off := peertest.Against(t, &peer.Options{Profile: &peer.Profile{Progress: peer.ProgressDialect{Off: true}}})
		_, failure := run.Call(t.Context(), off, ask{1}).Result()
		_, feeding := collecting.Call(t.Context(), off, ask{1}).Result()
		for _, err := range []error{err, failure, feeding} {
			var call *peer.CallError
			if !errors.Is(err, peer.ErrNoPlace) || !errors.As(err, &call) || call.Sent.String() != "not sent" {
				t.Errorf("Result() = %v, want ErrNoPlace, not sent", err)
			}
		}
		if sent := append(raw.Waiting(), none.Waiting()...); len(sent) > 0 {
			t.Errorf("sent %q", sent)
		}
	})
}

// send is for several goroutines, says what cannot be sent, and ends with the handler.
func TestSend(t *testing.T) {
	any := stream.Method[ask, any, string]("run")
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		var kept func(item interface{}) error
		late := make(chan error, 1)
		any.Handle(&reg, func(ctx context.Context, in ask, send func(interface{}) error) (string, error) {
			kept = send
			var broken *stream.ItemError
			if err := send(make(chan int)); !errors.As(err, &broken) {
				t.Errorf("send of a channel = %v, want an *ItemError", err)
			}
			var limit *peer.LimitError
			if err := send(strings.Repeat("x", 5<<10)); !errors.As(err, &limit) {
				t.Errorf("send of what is too long = %v, want a *LimitError", err)
			}
			if err := send(json.RawMessage(`{`)); err == nil {
				t.Error("send took what is no JSON")
			}
			done := make(chan error, 10)
			for i := range 10 {
				go func() { done <- send(i) }()
			}
			for range 10 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			go func() { late <- send("waits for credit") }()
			synctest.Wait()
			return "done", nil
		})
		a, _ := peertest.Pair(t, nil, &peer.Options{Handler: &reg, Limits: peer.Limits{MessageBytes: 4 << 10}})
		s := any.Call(t.Context(), a, ask{}, stream.Window(10, 1000))
		time.Sleep(time.Second)
		items, err := collect(s)
		if out, failure := s.Result(); len(items) != 10 || err != nil || out != "done" || failure != nil {
			t.Errorf("%v, %v; %q, %v", items, err, out, failure)
		}
		if err := <-late; !errors.Is(err, stream.ErrEnded) {
			t.Errorf("a send that waited for credit = %v, want ErrEnded", err)
		}
		if err := kept(1); !errors.Is(err, stream.ErrEnded) && !errors.Is(err, context.Canceled) {
			t.Errorf("send after the handler = %v, want ErrEnded", err)
		}
	})
}

// A notification of the method reaches no handler, and a middleware may stand between.
func TestNotificationAndMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrapped := 0
		a, b := peertest.Pair(t, &peer.Options{Outgoing: []func(peer.Caller) peer.Caller{func(next peer.Caller) peer.Caller {
			return middle{next, &wrapped}
		}}}, counting(nil))
		if items, err := collect(run.Call(t.Context(), a, ask{3})); len(items) != 3 || err != nil || wrapped != 1 {
			t.Errorf("%v, %v through %d middlewares", items, err, wrapped)
		}
		if err := a.Notify(t.Context(), "run", map[string]any{"n": 3, "partialResultToken": 1}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := b.Stats().Events[peer.RefusedNotification]; n != 1 {
			t.Errorf("%d notifications refused, want 1", n)
		}
	})
}

type middle struct {
	peer.Caller
	calls *int
}

func (m middle) Call(ctx context.Context, method string, params, result any, opts ...peer.CallOption) error {
	*m.calls++
	return m.Caller.Call(ctx, method, params, result, opts...)
}

// A middleware that makes the call again gets an error, not the items twice.
func TestCallIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var second error
		a, _ := peertest.Pair(t, &peer.Options{Outgoing: []func(peer.Caller) peer.Caller{func(next peer.Caller) peer.Caller {
			return twice{next, &second}
		}}}, counting(nil))
		items, err := collect(run.Call(t.Context(), a, ask{3}))
		if !slices.Equal(items, upTo(3)) || err != nil || second == nil {
			t.Errorf("%v, %v, and again %v", items, err, second)
		}
	})
}

type twice struct {
	peer.Caller
	err *error
}

func (m twice) Call(ctx context.Context, method string, params, result any, opts ...peer.CallOption) error {
	err := m.Caller.Call(ctx, method, params, result, opts...)
	*m.err = m.Caller.Call(ctx, method, params, new(string), opts...)
	return err
}

func TestOptionsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"no items":    func() { stream.Window(0, 1) },
		"no bytes":    func() { stream.Buffer(1, 0) },
		"nil handler": func() { run.Handle(&peer.Registry{}, nil) },
		"nil feed":    func() { collecting.Handle(&peer.Registry{}, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// A method that may be called without a place for items gets none, and a method with
// one does.
func TestOptional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		run.Handle(&reg, func(_ context.Context, in ask, send func(int) error) (string, error) {
			if send == nil {
				return "whole", nil
			}
			return "parts", send(in.N)
		}, stream.Optional())
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		raw.Send(request(1, `{"n":7}`))
		raw.Want(answer(1, `"whole"`))
		raw.Send(request(2, `{"n":7,"partialResultToken":1}`))
		raw.Want(item("$/progress", `{"token":1,"value":7}`), answer(2, `"parts"`))
	})
}

// Options of the registration arrive there.
func TestHandling(t *testing.T) {
	var reg peer.Registry
	run.Handle(&reg, func(context.Context, ask, func(int) error) (string, error) { return "", nil },
		stream.Handling(peer.Doc("counts")))
	if m := reg.Methods(); len(m) != 1 || m[0].Doc != "counts" || m[0].Params == nil {
		t.Errorf("Methods() = %+v", m)
	}
}

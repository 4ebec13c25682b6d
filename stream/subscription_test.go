package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/stream"
)

// subscriber returns a Subscriber for the namespace eth.
func subscriber(t *testing.T, conn *peer.Conn) *stream.Subscriber {
	t.Helper()
	s, err := stream.NewSubscriber(conn, "eth")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// following subscribes to watch at a bare end, which answers with the id "a".
func following(t *testing.T, opts ...stream.Option) (*peertest.Raw, *peer.Conn, *stream.Subscriber, *stream.Subscription[int]) {
	t.Helper()
	raw, conn := peertest.Against(t, nil)
	s := subscriber(t, conn)
	sub := make(chan *stream.Subscription[int], 1)
	go func() {
		got, err := watch.Subscribe(t.Context(), s, struct{}{}, opts...)
		if err != nil {
			t.Error(err)
		}
		sub <- got
	}()
	raw.Want(ethSubscribe(1, `["watch"]`))
	raw.Send(answer(1, `"a"`))
	return raw, conn, s, <-sub
}

// all takes what there is until the loop ends by itself.
func all[Item any](s *stream.Subscription[Item]) (items []Item, err error) {
	for item, e := range s.All() {
		if e != nil {
			return items, e
		}
		items = append(items, item)
	}
	return items, nil
}

// Many subscriptions at a time, each with its items in order; leaving the loop ends the
// publisher.
func TestSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, items = 100, 200
		var topics stream.Topics
		causes := make(chan error, many)
		counts.Handle(&topics, func(ctx context.Context, in span, send func(int) error) error {
			err := spanning(ctx, in, send)
			causes <- err
			return err
		})
		a, _ := peertest.Pair(t, nil, publishing(&topics))
		s := subscriber(t, a)
		var wg sync.WaitGroup
		ids := make([]string, many)
		for i := range many {
			wg.Go(func() {
				sub, err := counts.Subscribe(t.Context(), s, span{i, i + items - 1})
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = sub.ID()
				next := i
				for item, err := range sub.All() {
					if item != next || err != nil {
						t.Errorf("item %d, %v; want %d", item, err, next)
						break
					}
					if next++; next == i+items {
						break
					}
				}
				if err := sub.Unsubscribe(); err != nil {
					t.Error(err)
				}
				if rest, err := all(sub); len(rest) > 0 || err != stream.ErrEnded {
					t.Errorf("All again: %v, %v", rest, err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		for range many {
			if err := <-causes; err != stream.ErrUnsubscribed {
				t.Errorf("a publisher ends with %v", err)
			}
		}
		slices.Sort(ids)
		if len(slices.Compact(ids)) != many {
			t.Error("ids are not different")
		}
		n, conns := topics.Held()
		if open, early := s.Held(); n+conns+open != 0 || early+s.Dropped() != 0 {
			t.Errorf("left behind: %d of %d at the publisher, %d and %d early here, %d dropped", n, conns, open, early, s.Dropped())
		}
	})
}

// The params of each form that arguments may have.
func TestSubscriptionArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type options struct {
			Address string   `json:"address,omitzero"`
			Topics  []string `json:"topics"`
		}
		type logs struct {
			Filter options
			Full   *bool `json:",omitzero"`
		}
		raw, conn := peertest.Against(t, nil)
		s := subscriber(t, conn)
		yes := true
		for i, test := range []struct {
			subscribe func() error
			want      string
		}{
			{func() error { return into[struct{}](t, s, struct{}{}) }, `["x"]`},
			{func() error { return into[span](t, s, span{1, 2}) }, `["x",1,2]`},
			{func() error { return into[span](t, s, span{1, 0}) }, `["x",1]`},
			{func() error { return into[logs](t, s, logs{options{"0x1", nil}, &yes}) }, `["x",{"address":"0x1","topics":[]},true]`},
			{func() error { return into[*logs](t, s, nil) }, `["x"]`},
			{func() error { return into[[]any](t, s, []any{}) }, `["x"]`},
			{func() error { return into[[]any](t, s, []any{1, "]", nil}) }, `["x",1,"]",null]`},
			{func() error { return into[json.RawMessage](t, s, json.RawMessage(" [ 1 ] ")) }, `["x",1]`},
			{func() error { return into[json.RawMessage](t, s, json.RawMessage("[ ]")) }, `["x"]`},
		} {
			go func() {
				if err := test.subscribe(); err != nil {
					t.Error(err)
				}
			}()
			raw.Want(ethSubscribe(i+1, test.want))
			raw.Send(answer(i+1, fmt.Sprint(i)))
		}
		synctest.Wait()
		for _, err := range []error{
			into[int](t, s, 5),
			into[string](t, s, "x"),
			into[json.RawMessage](t, s, json.RawMessage("[")),
			into[json.RawMessage](t, s, json.RawMessage("")),
			into[func()](t, s, nil),
		} {
			if err == nil {
				t.Error("arguments that are none were sent")
			}
		}
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("sent %q", got)
		}
	})
}

// into subscribes to x with arguments of any type.
func into[In any](t *testing.T, s *stream.Subscriber, in In) error {
	_, err := stream.Topic[In, int]("x").Subscribe(t.Context(), s, in)
	return err
}

// What comes right behind the answer is not lost, and in order, however late the caller
// knows the id; nor is what comes before it.
func TestSubscriptionEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		counts.Handle(&topics, spanning)
		a, _ := peertest.Pair(t, nil, publishing(&topics))
		s := subscriber(t, a)
		for range 1000 {
			sub, err := counts.Subscribe(t.Context(), s, span{1, 5})
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			for item, err := range sub.All() {
				if item != want || err != nil {
					t.Fatalf("item %d, %v; want %d", item, err, want)
				}
				if want++; want > 5 {
					break
				}
			}
			_ = sub.Unsubscribe()
		}
		if open, early := s.Held(); open != 0 || early+s.Dropped() != 0 {
			t.Errorf("%d subscriptions and %d early items are left, %d dropped", open, early, s.Dropped())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		s := subscriber(t, conn)
		subs := make(chan *stream.Subscription[int], 2)
		for range 2 {
			go func() {
				sub, err := watch.Subscribe(t.Context(), s, struct{}{})
				if err != nil {
					t.Error(err)
				}
				subs <- sub
			}()
		}
		raw.Receive()
		raw.Receive()
		raw.Send(ethPush("a", "result", "1"), ethPush("b", "error", `{"code":7,"message":"m"}`), ethPush("other", "result", "9"),
			ethPush("a", "result", "2"), answer(1, `"a"`), ethPush("a", "result", "3"))
		sub := <-subs
		if _, early := s.Held(); early != 2 {
			t.Errorf("%d early notifications while a call is in flight, want 2", early)
		}
		raw.Send(answer(2, `"b"`), ethPush("a", "error", `{"code":8,"message":"m"}`))
		other := <-subs
		synctest.Wait()
		if open, early := s.Held(); open != 0 || early != 0 || s.Dropped() != 1 {
			t.Errorf("%d subscriptions and %d early items are left, %d dropped", open, early, s.Dropped())
		}
		items, err := all(sub)
		if !slices.Equal(items, []int{1, 2, 3}) || !errors.Is(err, &peer.Error{Code: 8}) {
			t.Errorf("%v, %v", items, err)
		}
		if items, err := all(other); len(items) > 0 || !errors.Is(err, &peer.Error{Code: 7}) {
			t.Errorf("%v, %v", items, err)
		}
		go func() { // what came for that id is forgotten
			sub, err := watch.Subscribe(t.Context(), s, struct{}{}, stream.Buffer(2, 1<<10))
			if err != nil {
				t.Error(err)
			}
			subs <- sub
		}()
		raw.Receive()
		raw.Send(ethPush("other", "result", "1"), ethPush("other", "result", "2"), ethPush("other", "result", "3"), answer(3, `"other"`))
		sub = <-subs
		raw.Send(ethPush("other", "result", "4")) // the bound is that of the caller now
		raw.Want(ethUnsubscribe(4, `["other"]`))
		raw.Send(answer(4, "true"))
		if items, err := all(sub); !slices.Equal(items, []int{1, 2, 3}) || err != stream.ErrSlowConsumer {
			t.Errorf("%v, %v", items, err)
		}
	})
}

// What is kept of unknown ids has a bound, and who may have lost something by it is
// told. Without a call in flight nothing is kept.
func TestSubscriptionEarlyBounds(t *testing.T) {
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	for name, push := range map[string]func(i int) string{
		"items of one":  func(int) string { return ethPush("a", "result", "1") },
		"items of many": func(i int) string { return ethPush(fmt.Sprint(i), "result", "1") },
		"errors":        func(i int) string { return ethPush(fmt.Sprint(i), "error", "1") },
		"bytes":         func(i int) string { return ethPush(fmt.Sprint(i%20), "result", big) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, nil)
				s := subscriber(t, conn)
				n, most := 20_100, int64(20_000)
				if name == "bytes" {
					n, most = 12, 7
				}
				for i := range 10 {
					raw.Send(push(i))
				}
				synctest.Wait()
				if _, early := s.Held(); early != 0 || s.Dropped() != 10 {
					t.Errorf("%d kept and %d dropped while no call is in flight", early, s.Dropped())
				}
				sub := make(chan *stream.Subscription[int])
				go func() {
					got, err := watch.Subscribe(t.Context(), s, struct{}{})
					if err != nil {
						t.Error(err)
					}
					sub <- got
				}()
				raw.Receive()
				for i := range n {
					raw.Send(push(i))
				}
				synctest.Wait()
				if _, early := s.Held(); early != most {
					t.Errorf("%d are kept, want %d", early, most)
				}
				raw.Send(answer(1, `"a"`))
				got := <-sub
				raw.Want(ethUnsubscribe(2, `["a"]`)) // before anybody looks
				items, err := all(got)
				if !errors.Is(err, stream.ErrSlowConsumer) {
					t.Errorf("%d items, %v", len(items), err)
				}
				raw.Send(answer(2, "true"))
				synctest.Wait()
				if open, early := s.Held(); open != 0 || early != 0 {
					t.Errorf("%d subscriptions and %d early items are left", open, early)
				}
				if got := s.Dropped() + int64(len(items)); got != int64(n)+10 {
					t.Errorf("%d are dropped or yielded, want %d", got, n+10)
				}
			})
		})
	}
}

// More than Buffer allows ends it, at both ends, also where nobody looks at it.
func TestSubscriptionSlow(t *testing.T) {
	for name, test := range map[string]struct {
		opts []stream.Option
		item string
		fits int
	}{
		"items":   {[]stream.Option{stream.Buffer(100, 1<<20)}, "1", 100},
		"bytes":   {[]stream.Option{stream.Buffer(1000, 1<<20)}, `"` + strings.Repeat("1", 1<<18-2) + `"`, 4},
		"default": {nil, "1", 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _, s, sub := following(t, test.opts...)
				for range test.fits {
					raw.Send(ethPush("a", "result", test.item))
				}
				synctest.Wait()
				if got := raw.Waiting(); len(got) > 0 {
					t.Fatalf("sent %q", got)
				}
				raw.Send(ethPush("a", "result", test.item), ethPush("a", "result", test.item))
				raw.Want(ethUnsubscribe(2, `["a"]`)) // nobody took an item yet
				raw.Send(answer(2, "true"))
				if name == "bytes" {
					if _, err := all(sub); !errors.As(err, new(*stream.ItemError)) {
						t.Errorf("All: %v", err)
					}
				} else if items, err := all(sub); len(items) != test.fits || err != stream.ErrSlowConsumer {
					t.Errorf("%d items, %v", len(items), err)
				}
				if err := sub.Unsubscribe(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if open, _ := s.Held(); open != 0 || len(raw.Waiting()) > 0 {
					t.Error("something is left")
				}
			})
		})
	}
}

// Who keeps up may take any number of items: those that were taken do not count.
func TestSubscriptionKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _, _, sub := following(t, stream.Buffer(100, 1<<20))
		step := make(chan struct{})
		var err error
		taken := 0
		go func() {
			for _, err = range sub.All() {
				if err != nil {
					break
				}
				if taken++; taken%10 == 0 {
					<-step
				}
			}
			close(step)
		}()
		send := func(n int) {
			for range n {
				raw.Send(ethPush("a", "result", "1"))
			}
			synctest.Wait()
		}
		send(100)
		for i := range 200 {
			if want := 10 * (i + 1); taken != want || err != nil {
				t.Fatalf("%d taken, want %d; %v", taken, want, err)
			}
			send(10) // 100 wait now
			step <- struct{}{}
			synctest.Wait()
		}
		raw.Send(ethPush("a", "error", `{"code":7,"message":"m"}`))
		for range 10 {
			step <- struct{}{}
		}
		<-step
		if taken != 2100 || !errors.Is(err, &peer.Error{Code: 7}) {
			t.Errorf("%d items, %v", taken, err)
		}
	})
}

// An item of another type ends it, and so does leaving the loop, by a panic too.
func TestSubscriptionLeft(t *testing.T) {
	for name, loop := range map[string]func(t *testing.T, sub *stream.Subscription[int]){
		"item": func(t *testing.T, sub *stream.Subscription[int]) {
			items, err := all(sub)
			if !slices.Equal(items, []int{1}) || !errors.As(err, new(*stream.ItemError)) {
				t.Errorf("%v, %v", items, err)
			}
		},
		"break": func(t *testing.T, sub *stream.Subscription[int]) {
			for range sub.All() {
				break
			}
		},
		"panic": func(t *testing.T, sub *stream.Subscription[int]) {
			defer func() { _ = recover() }()
			for range sub.All() {
				panic("on purpose")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _, s, sub := following(t)
				raw.Send(ethPush("a", "result", "1"), ethPush("a", "result", `"x"`), ethPush("a", "result", "2"))
				loop(t, sub) // which does not wait for the answer
				raw.Want(ethUnsubscribe(2, `["a"]`))
				raw.Send(ethPush("a", "result", "3"), answer(2, "true"))
				if err := sub.Unsubscribe(); err != nil {
					t.Error(err)
				}
				if open, _ := s.Held(); open != 0 || s.Dropped() != 0 {
					t.Errorf("%d open, %d dropped", open, s.Dropped())
				}
			})
		})
	}
}

// The loop ends with the error of the publisher, as far as it is one.
func TestSubscriptionFails(t *testing.T) {
	for text, want := range map[string]peer.Error{
		`{"code":7,"message":"m"}`:                      {Code: 7, Message: "m"},
		`{"code":-32603,"message":"m","data":{"a":[]}}`: {Code: -32603, Message: "m", Data: json.RawMessage(`{"a":[]}`)},
		`{"code":7}`:                     {Code: 7},
		`"gone"`:                         {Code: -32603, Message: "the subscription failed", Data: json.RawMessage(`"gone"`)},
		`null`:                           {Code: -32603, Message: "the subscription failed", Data: json.RawMessage(`null`)},
		`{"code":"7","message":"m"}`:     {Code: -32603, Message: "the subscription failed", Data: json.RawMessage(`{"code":"7","message":"m"}`)},
		`{"code":1.5,"message":"m"}`:     {Code: -32603, Message: "the subscription failed", Data: json.RawMessage(`{"code":1.5,"message":"m"}`)},
		`[{"code":7,"message":"other"}]`: {Code: -32603, Message: "the subscription failed", Data: json.RawMessage(`[{"code":7,"message":"other"}]`)},
	} {
		synctest.Test(t, func(t *testing.T) {
			raw, _, s, sub := following(t)
			raw.Send(ethPush("a", "result", "1"), ethPush("a", "error", text), ethPush("a", "result", "2"))
			items, err := all(sub)
			var call *peer.CallError
			var e *peer.Error
			if !slices.Equal(items, []int{1}) || !errors.As(err, &call) || !errors.As(err, &e) {
				t.Fatalf("%v, %v", items, err)
			}
			if call.Method != "eth_subscribe" || e.Code != want.Code || e.Message != want.Message || string(e.Data) != string(want.Data) {
				t.Errorf("%s is read as %v, data %s", text, err, e.Data)
			}
			synctest.Wait()
			if err := sub.Unsubscribe(); err != nil {
				t.Error(err)
			}
			if open, _ := s.Held(); open != 0 || s.Dropped() != 1 || len(raw.Waiting()) > 0 {
				t.Errorf("%d open, %d dropped", open, s.Dropped())
			}
		})
	}
}

// What had come before the connection ended is yielded, then why that ended.
func TestSubscriptionConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn, s, sub := following(t)
		raw.Send(ethPush("a", "result", "1"), ethPush("a", "result", "2"))
		synctest.Wait()
		_ = conn.Close()
		items, err := all(sub)
		if !slices.Equal(items, []int{1, 2}) || !errors.Is(err, peer.ErrClosed) {
			t.Errorf("%v, %v", items, err)
		}
		if err := sub.Unsubscribe(); !errors.Is(err, peer.ErrClosed) {
			t.Errorf("Unsubscribe() = %v", err)
		}
		if _, err := watch.Subscribe(t.Context(), s, struct{}{}); !errors.Is(err, peer.ErrClosed) {
			t.Errorf("Subscribe = %v", err)
		}
		if open, _ := s.Held(); open != 0 {
			t.Errorf("%d open", open)
		}
	})
	synctest.Test(t, func(t *testing.T) { // while the loop waits, and a call
		raw, conn, s, sub := following(t)
		ended := make(chan error, 2)
		raw.Send(ethPush("a", "result", "1"))
		go func() { _, err := all(sub); ended <- err }()
		go func() { _, err := watch.Subscribe(t.Context(), s, struct{}{}); ended <- err }()
		synctest.Wait()
		if sub.Waits() {
			t.Error("it waits for credit, too")
		}
		raw.Close(nil)
		<-conn.Done()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Cause(conn.Context())) {
				t.Errorf("All, or Subscribe: %v", err)
			}
		}
	})
}

// Unsubscribe ends the loop after what had come, is sent once, and has the answer's error.
func TestUnsubscribe(t *testing.T) {
	for reply, want := range map[string]string{
		`"result":true`:  "",
		`"result":false`: "", // it knew nothing of it
		`"error":{"code":-32000,"message":"subscription not found"}`: "subscription not found",
		"":       "deadline exceeded", // within 10 s
		"closed": "closed by the other end",
	} {
		synctest.Test(t, func(t *testing.T) {
			raw, _, s, sub := following(t)
			if sub.ID() != "a" {
				t.Errorf("ID() = %s", sub.ID())
			}
			raw.Send(ethPush("a", "result", "1"), ethPush("a", "result", "2"))
			synctest.Wait()
			began := time.Now()
			results := make(chan error)
			for range 3 {
				go func() { results <- sub.Unsubscribe() }()
			}
			raw.Want(ethUnsubscribe(2, `["a"]`))
			raw.Send(ethPush("a", "result", "3"), ethPush("a", "error", "4"))
			synctest.Wait()
			if items, err := all(sub); !slices.Equal(items, []int{1, 2}) || err != nil {
				t.Errorf("%v, %v", items, err)
			}
			switch reply {
			case "":
			case "closed":
				raw.Close(nil)
			default:
				raw.Send(`{"jsonrpc":"2.0","id":2,` + reply + `}`)
			}
			for range 3 {
				if err := <-results; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("Unsubscribe() = %v, want %q", err, want)
				}
			}
			if took := time.Since(began); (took == 10*time.Second) != (reply == "") {
				t.Errorf("it took %v", took)
			}
			if open, _ := s.Held(); open != 0 || s.Dropped() != 0 {
				t.Errorf("%d open, %d dropped", open, s.Dropped())
			}
			for _, m := range raw.Waiting() {
				if reply != "" || !strings.Contains(m, "$/cancelRequest") {
					t.Errorf("sent %s", m)
				}
			}
		})
	}
}

// Subscribe returns when its context ends, and what comes of the call is given up.
func TestSubscribeCancelled(t *testing.T) {
	for _, reply := range []string{`"result":"a"`, `"error":{"code":7,"message":"m"}`} {
		synctest.Test(t, func(t *testing.T) {
			raw, conn := peertest.Against(t, nil)
			s := subscriber(t, conn)
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error)
			go func() {
				_, err := watch.Subscribe(ctx, s, struct{}{})
				failed <- err
			}()
			raw.Want(ethSubscribe(1, `["watch"]`))
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("Subscribe = %v", err)
			}
			synctest.Wait()
			if got := raw.Waiting(); len(got) > 0 {
				t.Errorf("sent %q, where the id is needed", got)
			}
			raw.Send(ethPush("a", "result", "1"), `{"jsonrpc":"2.0","id":1,`+reply+`}`)
			if strings.Contains(reply, "result") {
				raw.Want(ethUnsubscribe(2, `["a"]`))
				raw.Send(answer(2, "true"))
			}
			synctest.Wait()
			if open, early := s.Held(); open != 0 || early != 0 || len(raw.Waiting()) > 0 {
				t.Errorf("%d subscriptions and %d early items are left", open, early)
			}
			if _, err := watch.Subscribe(ctx, s, struct{}{}); !errors.Is(err, context.Canceled) || len(raw.Waiting()) > 0 {
				t.Errorf("Subscribe with a context that has ended = %v", err)
			}
		})
	}
}

// Answers that are no new id, and refusals.
func TestSubscribeRefused(t *testing.T) {
	for reply, want := range map[string]string{
		`"result":null`:                    "no id",
		`"result":true`:                    "no id",
		`"result":["a"]`:                   "no id",
		`"result":{"subscription":"a"}`:    "no id",
		`"result":"a"`:                     "in use",
		`"error":{"code":7,"message":"m"}`: "m",
	} {
		synctest.Test(t, func(t *testing.T) {
			raw, _, s, sub := following(t)
			failed := make(chan error)
			go func() {
				_, err := watch.Subscribe(t.Context(), s, struct{}{})
				failed <- err
			}()
			raw.Receive()
			raw.Send(`{"jsonrpc":"2.0","id":2,` + reply + `}`)
			if err := <-failed; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", reply, err)
			}
			raw.Send(ethPush("a", "result", "1"))
			for item, err := range sub.All() { // goes on
				if item != 1 || err != nil {
					t.Errorf("%d, %v", item, err)
				}
				break
			}
			if open, _ := s.Held(); open != 1 {
				t.Errorf("%d open", open)
			}
		})
	}
}

// Ids that are numbers compare by value, as those of calls do.
func TestSubscriptionNumberID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		s := subscriber(t, conn)
		go func() {
			raw.Want(ethSubscribe(1, `["watch"]`))
			raw.Send(answer(1, "7.0"),
				`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":7,"result":1}}`,
				ethPush("7", "result", "2"))
			raw.Want(ethUnsubscribe(2, `[7.0]`))
			raw.Send(answer(2, "true"))
		}()
		sub, err := watch.Subscribe(t.Context(), s, struct{}{})
		if err != nil || sub.ID() != "7.0" {
			t.Fatal(err, sub.ID())
		}
		synctest.Wait()
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
		if items, err := all(sub); !slices.Equal(items, []int{1}) || err != nil || s.Dropped() != 1 {
			t.Errorf("%v, %v, %d dropped", items, err, s.Dropped())
		}
	})
}

// Notifications that are wrong are dropped and counted, and harm nothing.
func TestSubscriptionHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn, s, sub := following(t)
		for _, params := range []string{
			`{}`, `[]`, `["a",1]`,
			`{"result":1}`,
			`{"subscription":"a"}`,
			`{"subscription":"b","result":1}`,
			`{"subscription":null,"result":1}`,
			`{"subscription":["a"],"result":1}`,
			`{"subscription":{},"error":{}}`,
			`{"subscription":"A","result":1}`,
			`{"Subscription":"a","result":1}`,
			`{"subscription":"a","Result":1}`,
			`{"subscription":"` + strings.Repeat("a", 300) + `","result":1}`,
		} {
			raw.Send(`{"jsonrpc":"2.0","method":"eth_subscription","params":` + params + `}`)
			synctest.Wait()
		}
		raw.Send(`{"jsonrpc":"2.0","method":"eth_subscription"}`)
		raw.Send(`[` + ethPush("a", "result", "1") + `,` + ethPush("b", "result", "1") + `]`)
		raw.Send(`{"jsonrpc":"2.0","method":"eth_subscription","params":{"result":2,"more":{},"subscription":"\u0061"}}`)
		synctest.Wait()
		if s.Dropped() != 15 || conn.Err() != nil {
			t.Errorf("%d dropped, %v", s.Dropped(), conn.Err())
		}
		// A call of that name is no notification.
		raw.Send(`{"jsonrpc":"2.0","id":5,"method":"eth_subscription","params":{"subscription":"a","result":1}}`)
		raw.Want(`{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"method not found"}}`)
		go func() { _ = sub.Unsubscribe() }()
		if items, err := all(sub); !slices.Equal(items, []int{1, 2}) || err != nil {
			t.Errorf("%v, %v", items, err)
		}
	})
}

// A connection has one Subscriber of a namespace.
func TestSubscriberOfNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := peertest.Against(t, nil)
		subscriber(t, conn)
		if _, err := stream.NewSubscriber(conn, "eth"); !errors.Is(err, peer.ErrToken) {
			t.Errorf("the second of a namespace: %v", err)
		}
		if _, err := stream.NewSubscriber(conn, "net"); err != nil {
			t.Error(err)
		}
	})
}

// badCaller panics in one method, or leaves its goroutine.
type badCaller struct {
	peer.Caller
	goexit bool
	method string
}

func (b badCaller) Call(ctx context.Context, method string, params, result any, opts ...peer.CallOption) error {
	switch {
	case method != b.method:
		return b.Caller.Call(ctx, method, params, result, opts...)
	case b.goexit:
		runtime.Goexit()
	}
	panic("outgoing panics")
}

// Options.Outgoing runs in goroutines of this package, and what it does there shows where
// somebody waits.
func TestSubscriptionOutgoing(t *testing.T) {
	for _, method := range []string{"eth_subscribe", "eth_unsubscribe"} {
		for _, goexit := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				const top = stream.Topic[struct{}, int]("x")
				topics := &stream.Topics{Namespace: "eth"}
				top.Handle(topics, func(ctx context.Context, _ struct{}, _ func(int) error) error { <-ctx.Done(); return nil })
				var reg peer.Registry
				topics.Register(&reg)
				a, _ := peertest.Pair(t, &peer.Options{Outgoing: []func(peer.Caller) peer.Caller{
					func(c peer.Caller) peer.Caller { return badCaller{c, goexit, method} },
				}}, &peer.Options{Handler: &reg})
				s, err := stream.NewSubscriber(a, "eth")
				if err != nil {
					t.Fatal(err)
				}
				var panicked any
				func() {
					defer func() { panicked = recover() }()
					sub, failure := top.Subscribe(t.Context(), s, struct{}{})
					if err = failure; err == nil {
						err = sub.Unsubscribe()
					}
				}()
				if goexit && (err == nil || panicked != nil) || !goexit && panicked != "outgoing panics" {
					t.Errorf("%s, goexit %t: %v, recovered %v", method, goexit, err, panicked)
				}
			})
		}
	}
}

// An argument that is left out before others would move them; that is refused.
func TestSubscriptionGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type args struct {
			A int `json:"a,omitzero"`
			B int `json:"b,omitzero"`
			c int
			D int `json:"-"`
			E string
		}
		const top = stream.Topic[args, int]("x")
		raw, conn := peertest.Against(t, nil)
		s, err := stream.NewSubscriber(conn, "eth")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := top.Subscribe(t.Context(), s, args{B: 7, c: 1}); !errors.Is(err, peer.ErrParams) {
			t.Errorf("Subscribe() = %v, want ErrParams", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = top.Subscribe(ctx, s, args{A: 1, B: 7, E: "e"})
		raw.Want(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["x",1,7,"e"]}`)
	})
}

package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/pending"
)

// An array that is refused is answered once, and nothing in it runs. The rest of
// what is received in arrays stands in testdata/batches.txt.
func TestBatchRefused(t *testing.T) {
	bump := `{"jsonrpc":"2.0","method":"bump"}`
	var calls []string
	for id := range 20 {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"bump"}`, id))
	}
	for _, tc := range []struct {
		name string
		opts peer.Options
		text string
		why  string
	}{
		{"BatchItems", peer.Options{Limits: peer.Limits{BatchItems: 3}},
			"[" + strings.Join(calls[:4], ",") + "]", "the batch has too many items"},
		{"BatchItems of notifications", peer.Options{Limits: peer.Limits{BatchItems: 3}},
			"[" + strings.Join([]string{bump, bump, bump, bump}, ",") + "]", "the batch has too many items"},
		{"NoBatch", peer.Options{Profile: &peer.Profile{Rules: codec.Rules{NoBatch: true}}},
			"[" + calls[0] + "]", "batches are not accepted"},
		{"answer would not fit", peer.Options{Limits: peer.Limits{MessageBytes: 1024}},
			"[" + strings.Join(calls, ",") + "]", "its answer would not fit into a message"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.opts.Handler = playRegistry()
				raw, _ := peertest.Against(t, &tc.opts)
				raw.Send(tc.text)
				raw.Want(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: ` + tc.why + `"}}`)
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"total"}`)
				raw.Want(`{"jsonrpc":"2.0","id":1,"result":0}`)
			})
		})
	}
}

// As many items as allowed are served.
func TestBatchItemsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, &peer.Options{Handler: playRegistry(), Limits: peer.Limits{BatchItems: 3}})
		bump := `{"jsonrpc":"2.0","method":"bump"}`
		raw.Send("["+strings.Join([]string{bump, bump, bump}, ",")+"]", `{"jsonrpc":"2.0","id":1,"method":"total"}`)
		raw.Want(`{"jsonrpc":"2.0","id":1,"result":3}`)
	})
}

// An array over InFlight runs as far as there are places; the calls of an array
// keep theirs until it is answered.
func TestBatchInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := make(gate)
		raw, conn := peertest.Against(t, &peer.Options{Handler: g, Limits: peer.Limits{InFlight: 2}})
		raw.Send(`[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":2,"method":"m"},{"jsonrpc":"2.0","id":3,"method":"m"}]`)
		synctest.Wait() // the third is refused
		g <- struct{}{} // one of the two returns
		synctest.Wait()
		if got := conn.Stats().InFlight; got != 2 {
			t.Errorf("Stats().InFlight = %d, want 2 until the array is answered", got)
		}
		raw.Send(`{"jsonrpc":"2.0","id":4,"method":"m"}`)
		raw.Want(`{"jsonrpc":"2.0","id":4,` + overloaded)
		g <- struct{}{}
		got := raw.Receive()
		for _, entry := range []string{`[{"jsonrpc":"2.0","id":3,` + overloaded, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":2,"result":null}`} {
			if !strings.Contains(got, entry) {
				t.Errorf("answer %s is without %s", got, entry)
			}
		}
		if got := conn.Stats().InFlight; got != 0 {
			t.Errorf("Stats().InFlight = %d, want 0", got)
		}
	})
}

// An array counts with its bytes once, and one larger than InFlightBytes passes
// alone, with all of its calls.
func TestBatchInFlightBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := make(gate)
		raw, _ := peertest.Against(t, &peer.Options{Handler: g, Limits: peer.Limits{InFlightBytes: 100}})
		raw.Send("[" + callText("1", 90) + "," + callText("2", 90) + "]")
		raw.Send(callText("3", 60))
		raw.Want(`{"jsonrpc":"2.0","id":3,` + overloaded)
		close(g)
		if got := raw.Receive(); strings.Count(got, `"result"`) != 2 {
			t.Errorf("Receive() = %s, want two results", got)
		}
	})
}

// calling runs Batch in a goroutine; the channel gives what it returned.
func calling(ctx context.Context, c *peer.Conn, items []peer.BatchItem) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Batch(ctx, items) }()
	return done
}

func TestBatchOut(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answers []string
	}{
		{"in one array", []string{`[{"jsonrpc":"2.0","id":1,"result":"one"},{"jsonrpc":"2.0","id":2,"error":{"code":7,"message":"seven"}},{"jsonrpc":"2.0","id":3,"result":[3]}]`}},
		{"in another order", []string{`[{"jsonrpc":"2.0","id":3,"result":[3]},{"jsonrpc":"2.0","id":2,"error":{"code":7,"message":"seven"}},{"jsonrpc":"2.0","id":1,"result":"one"}]`}},
		{"spread over messages", []string{
			`{"jsonrpc":"2.0","id":2,"error":{"code":7,"message":"seven"}}`,
			`[{"jsonrpc":"2.0","id":3,"result":[3]}]`, `{"jsonrpc":"2.0","id":1,"result":"one"}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, nil)
				var one string
				var three []int
				items := []peer.BatchItem{
					{Method: "a", Params: []int{1}, Result: &one},
					{Method: "n", Notification: true},
					{Method: "b"},
					{Method: "c", Result: &three},
				}
				done := calling(t.Context(), conn, items)
				raw.Want(`[{"jsonrpc":"2.0","id":1,"method":"a","params":[1]},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2,"method":"b"},{"jsonrpc":"2.0","id":3,"method":"c"}]`)
				raw.Send(tc.answers...)
				if err := <-done; err != nil {
					t.Errorf("Batch() = %v, want nil", err)
				}
				if one != "one" || len(three) != 1 || three[0] != 3 {
					t.Errorf("results %q and %v, want one and [3]", one, three)
				}
				for i, item := range items {
					if (item.Err != nil) != (i == 2) {
						t.Errorf("items[%d].Err = %v", i, item.Err)
					}
				}
				if !errors.Is(items[2].Err, &peer.Error{Code: 7}) {
					t.Errorf("items[2].Err = %v, want error 7", items[2].Err)
				}
			})
		})
	}
}

// What cannot be encoded, and what does not fit, fails alone and is not sent.
func TestBatchOutItemFails(t *testing.T) {
	for _, tc := range []struct {
		name  string
		item  peer.BatchItem
		check func(error) bool
	}{
		{"unencodable", peer.BatchItem{Method: "x", Params: []any{make(chan int)}}, func(err error) bool { return err != nil }},
		{"raw that is no JSON", peer.BatchItem{Method: "x", Params: json.RawMessage(`[1`)}, func(err error) bool { return err != nil }},
		{"params no array or object", peer.BatchItem{Method: "x", Params: 1}, func(err error) bool { return errors.Is(err, peer.ErrParams) }},
		{"too big", peer.BatchItem{Method: "x", Params: []string{strings.Repeat("x", 1024)}}, func(err error) bool {
			var limit *peer.LimitError
			return errors.As(err, &limit) && limit.What == "MessageBytes"
		}},
		{"too big notification", peer.BatchItem{Method: "x", Notification: true, Params: []string{strings.Repeat("x", 1024)}}, func(err error) bool {
			var limit *peer.LimitError
			return errors.As(err, &limit) && limit.What == "MessageBytes"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Limits: peer.Limits{MessageBytes: 1024}})
				items := []peer.BatchItem{tc.item, {Method: "a", Notification: true}, tc.item, {Method: "b", Notification: true}}
				if err := conn.Batch(t.Context(), items); err != nil {
					t.Errorf("Batch() = %v, want nil", err)
				}
				raw.Want(`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`)
				for i, item := range items {
					var call *peer.CallError
					if failed := i%2 == 0; !failed && item.Err != nil ||
						failed && (!tc.check(item.Err) || !errors.As(item.Err, &call) || call.Sent != pending.NotSent) {
						t.Errorf("items[%d].Err = %v", i, item.Err)
					}
				}
				if got := conn.Stats().Pending; got != 0 {
					t.Errorf("Stats().Pending = %d, want 0", got)
				}
			})
		})
	}
}

// What ends Batch before anything is sent.
func TestBatchOutRefused(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name  string
		ctx   context.Context
		opts  *peer.Options
		close bool
		want  func(error) bool
	}{
		{"NoBatch", t.Context(), &peer.Options{Profile: &peer.Profile{Rules: codec.Rules{NoBatch: true}}}, false,
			func(err error) bool { return errors.Is(err, peer.ErrNoBatch) }},
		{"BatchItems", t.Context(), &peer.Options{Limits: peer.Limits{BatchItems: 1}}, false, func(err error) bool {
			var limit *peer.LimitError
			return errors.As(err, &limit) && limit.What == "BatchItems"
		}},
		{"context", gone, nil, false, func(err error) bool { return errors.Is(err, context.Canceled) }},
		{"closed", t.Context(), nil, true, func(err error) bool { return errors.Is(err, peer.ErrClosed) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw, conn := peertest.Against(t, tc.opts)
			if tc.close {
				_ = conn.Close()
			}
			items := []peer.BatchItem{{Method: "a"}, {Method: "b", Notification: true}}
			if err := conn.Batch(tc.ctx, items); !tc.want(err) {
				t.Errorf("Batch() = %v", err)
			}
			for i, item := range items {
				if !tc.want(item.Err) {
					t.Errorf("items[%d].Err = %v, want the same", i, item.Err)
				}
			}
			_ = conn.Close()
			<-conn.Done()
			if got := raw.Waiting(); len(got) > 0 {
				t.Errorf("%q left", got)
			}
		})
	}
}

func TestBatchOutEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		if err := conn.Batch(t.Context(), nil); err != nil {
			t.Errorf("Batch(nil) = %v, want nil", err)
		}
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("%q left: an empty array is an invalid request", got)
		}
		_ = conn.Close()
		if err := conn.Batch(t.Context(), nil); err != nil {
			t.Errorf("Batch(nil) on a closed connection = %v, want nil: there is nothing to do", err)
		}
	})
}

// A method that may not stand in a batch fails alone.
func TestBatchOutNotInBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{
			Profile: &peer.Profile{Rules: codec.Rules{NotInBatch: []string{"initialize"}}},
		})
		items := []peer.BatchItem{{Method: "initialize"}, {Method: "n", Notification: true}}
		if err := conn.Batch(t.Context(), items); err != nil || !errors.Is(items[0].Err, peer.ErrNoBatch) {
			t.Errorf("Batch() = %v, items[0].Err = %v, want nil and ErrNoBatch", err, items[0].Err)
		}
		raw.Want(`[{"jsonrpc":"2.0","method":"n"}]`)
	})
}

// The end of the context cuts the wait short: what has an answer keeps it, every
// other call is given up at the other end.
func TestBatchOutContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var one int
		items := []peer.BatchItem{{Method: "a", Result: &one}, {Method: "b"}, {Method: "c"}}
		done := calling(ctx, conn, items)
		raw.Receive()
		raw.Send(`{"jsonrpc":"2.0","id":1,"result":1}`)
		began := time.Now()
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Batch() = %v after %v, want the deadline after 1s", err, time.Since(began))
		}
		if items[0].Err != nil || one != 1 {
			t.Errorf("items[0] = %d, %v, want 1, nil", one, items[0].Err)
		}
		for _, item := range items[1:] {
			var call *peer.CallError
			if !errors.As(item.Err, &call) || !errors.Is(call, context.DeadlineExceeded) || call.Sent != pending.Sent {
				t.Errorf("%s: Err = %v, want the deadline, sent", item.Method, item.Err)
			}
		}
		raw.Want(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}`,
			`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}}`)
		if got := conn.Stats().Pending; got != 0 {
			t.Errorf("Stats().Pending = %d, want 0", got)
		}
	})
}

// A slice that is used again does not keep the errors of the last time.
func TestBatchOutStaleErrors(t *testing.T) {
	_, conn := peertest.Against(t, nil)
	_ = conn.Close()
	stale := errors.New("stale")
	items := []peer.BatchItem{{Method: "a", Err: stale}}
	if err := conn.Batch(t.Context(), items); !errors.Is(err, peer.ErrClosed) || !errors.Is(items[0].Err, peer.ErrClosed) {
		t.Errorf("Batch() = %v, items[0].Err = %v, want ErrClosed twice", err, items[0].Err)
	}
}

package stream_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/stream"
)

const collecting = stream.Feed[ask, int, []int]("collect")

// gathering serves collect: it takes up to n items, or all where n is 0.
func gathering(p *peer.Profile, opts ...stream.Option) *peer.Options {
	var reg peer.Registry
	collecting.Handle(&reg, func(_ context.Context, in ask, items iter.Seq2[int, error]) ([]int, error) {
		var all []int
		for item, err := range items {
			if err != nil {
				return all, fmt.Errorf("after %d: %w", len(all), err)
			}
			if all = append(all, item); len(all) == in.N {
				break
			}
		}
		return all, nil
	}, opts...)
	return &peer.Options{Handler: &reg, Profile: p}
}

// Every item arrives once and in order, more than any window holds, in every dialect.
func TestFeed(t *testing.T) {
	for name, p := range dialects() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := peertest.Pair(t, &peer.Options{Profile: p}, gathering(p))
				f := collecting.Call(t.Context(), a, ask{})
				for i := range 1000 {
					if err := f.Send(i + 1); err != nil {
						t.Fatal(err)
					}
				}
				if out, err := f.Result(); !slices.Equal(out, upTo(1000)) || err != nil {
					t.Errorf("Result() = %d items, %v", len(out), err)
				}
				if err := f.Send(1); !errors.Is(err, stream.ErrEnded) {
					t.Errorf("Send after the result = %v, want ErrEnded", err)
				}
				if out, err := collecting.Call(t.Context(), a, ask{}).Result(); len(out) != 0 || err != nil {
					t.Errorf("without items: %v, %v", out, err)
				}
			})
		})
	}
}

// A handler that has enough answers, and who still sends is told.
func TestFeedEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := peertest.Pair(t, nil, gathering(nil))
		f := collecting.Call(t.Context(), a, ask{3})
		var err error
		for i := 0; err == nil; i++ {
			err = f.Send(i + 1)
		}
		if !errors.Is(err, stream.ErrEnded) {
			t.Errorf("Send = %v, want ErrEnded", err)
		}
		if out, err := f.Result(); !slices.Equal(out, upTo(3)) || err != nil {
			t.Errorf("Result() = %v, %v", out, err)
		}
		synctest.Wait()
		if b.Stats().InFlight != 0 || b.Err() != nil {
			t.Errorf("left behind: %+v, %v", b.Stats(), b.Err())
		}
	})
}

// The context of the call ends it at both ends, in Send and in the handler's loop; so
// does the connection.
func TestFeedCutShort(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			handled := make(chan error, 1)
			var reg peer.Registry
			collecting.Handle(&reg, func(_ context.Context, _ ask, items iter.Seq2[int, error]) ([]int, error) {
				for _, err := range items {
					if err != nil {
						handled <- err
						return nil, err
					}
				}
				handled <- nil
				return nil, nil
			})
			a, b := peertest.Pair(t, nil, &peer.Options{Handler: &reg})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f := collecting.Call(ctx, a, ask{})
			if err := f.Send(1); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if closed {
				_ = b.Close()
			} else {
				cancel()
			}
			if err := <-handled; !errors.Is(err, context.Canceled) && !errors.Is(err, peer.ErrClosed) {
				t.Errorf("the handler's loop ends with %v", err)
			}
			_, err := f.Result()
			if errors.Is(err, context.Canceled) == closed || err == nil {
				t.Errorf("Result() = %v", err)
			}
			if err := f.Send(2); err == nil {
				t.Error("Send after the end succeeds")
			}
			if err := f.End(); err == nil {
				t.Error("End after the end succeeds")
			}
		})
	}
}

// The wire form, both ways: nothing leaves before the handler wants it.
func TestFeedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		f := collecting.Call(t.Context(), conn, ask{})
		raw.Want(`{"jsonrpc":"2.0","id":1,"method":"collect","params":{"n":0,"_meta":{"io.github.duetrpc/feed":{"token":1}}}}`)
		sent := make(chan error, 3)
		go func() {
			for i := range 3 {
				sent <- f.Send(i + 1)
			}
			sent <- f.End()
			sent <- f.End()
		}()
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 {
			t.Fatalf("sent %q without credit", got)
		}
		raw.Send(item("$/stream/want", `{"token":1,"items":2,"bytes":100}`))
		raw.Want(item("$/stream/feed", `{"token":1,"value":1}`), item("$/stream/feed", `{"token":1,"value":2}`))
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 {
			t.Fatalf("sent %q over its credit", got)
		}
		raw.Send(item("$/stream/want", `{"token":1,"items":3,"bytes":101}`))
		raw.Want(item("$/stream/feed", `{"token":1,"value":3}`), item("$/stream/feed", `{"token":1,"end":true}`))
		for range 5 {
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
		raw.Send(answer(1, "[7]"))
		if out, err := f.Result(); !slices.Equal(out, []int{7}) || err != nil {
			t.Errorf("Result() = %v, %v", out, err)
		}
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("sent %q after the end", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, gathering(nil, stream.Window(2, 100)))
		call := func(id int, token string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"collect","params":{"n":0,"_meta":{"io.github.duetrpc/feed":{"token":%s}}}}`, id, token)
		}
		raw.Send(call(1, `"f"`))
		raw.Want(item("$/stream/want", `{"token":"f","items":2,"bytes":100}`))
		raw.Send(call(2, `"f"`))
		raw.Want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"invalid params: the token is in use by another stream"}}`)
		raw.Send(`{"jsonrpc":"2.0","id":3,"method":"collect","params":{"n":0,"_meta":{"progressToken":1}}}`)
		raw.Want(`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"invalid params: no token for the items of the stream"}}`)
		raw.Send(item("$/stream/feed", `{"token":"f","value":10}`))
		raw.Want(item("$/stream/want", `{"token":"f","items":3,"bytes":102}`))
		raw.Send(item("$/stream/feed", `{"token":"f","value":11}`))
		raw.Want(item("$/stream/want", `{"token":"f","items":4,"bytes":104}`))
		raw.Send(item("$/stream/feed", `{"token":"f","end":true}`), item("$/stream/feed", `{"token":"f","value":12}`))
		raw.Want(answer(1, "[10,11]"))
	})
}

// A caller that heeds no credit ends its own stream; what came before is taken.
func TestFeedFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		taken := 0
		var reg peer.Registry
		collecting.Handle(&reg, func(_ context.Context, _ ask, items iter.Seq2[int, error]) ([]int, error) {
			time.Sleep(time.Second) // all arrive meanwhile
			for _, err := range items {
				if err != nil {
					got <- err
					return nil, err
				}
				taken++
			}
			got <- nil
			return nil, nil
		}, stream.Window(4, 100))
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg})
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"collect","params":{"_meta":{"io.github.duetrpc/feed":{"token":1}}}}`)
		for range 1000 {
			raw.Send(item("$/stream/feed", `{"token":1,"value":1}`))
		}
		if err := <-got; !errors.Is(err, stream.ErrSlowConsumer) || taken != 4 {
			t.Errorf("the loop ends with %v after %d, want ErrSlowConsumer after 4", err, taken)
		}
		if conn.Err() != nil {
			t.Errorf("the connection ended: %v", conn.Err())
		}
	})
}

// Items of another type, and a loop that is begun twice.
func TestFeedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := stream.Feed[ask, string, int]("collect")
		var reg peer.Registry
		var broken *stream.ItemError
		texts.Handle(&reg, func(_ context.Context, _ ask, items iter.Seq2[string, error]) (int, error) {
			for _, err := range items {
				if !errors.As(err, &broken) {
					t.Errorf("the loop yields %v, want an *ItemError", err)
				}
			}
			for _, err := range items {
				if !errors.Is(err, stream.ErrEnded) {
					t.Errorf("the second loop yields %v, want ErrEnded", err)
				}
			}
			return 1, nil
		})
		a, _ := peertest.Pair(t, nil, &peer.Options{Handler: &reg})
		f := collecting.Call(t.Context(), a, ask{})
		if err := f.Send(7); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Result(); err == nil || broken == nil || strings.Contains(broken.Error(), "string") && strings.Contains(broken.Error(), "7") {
			t.Errorf("Result() = %v, %v", err, broken)
		}
	})
}

// An item that the handler cannot read is its caller's mistake, and says no more.
func TestFeedItemIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := peertest.Pair(t, nil, gathering(nil))
		f := stream.Feed[ask, string, []int]("collect").Call(t.Context(), a, ask{})
		_ = f.Send("text")
		var e *peer.Error
		if _, err := f.Result(); !errors.As(err, &e) || e.Code != peer.InvalidParams || e.Message != "invalid params: an item of the stream does not fit" {
			t.Errorf("Result() = %v", err)
		}
	})
}

// Where the profile has no place for items the other end's offer is told so.
func TestOfferWithoutPlace(t *testing.T) {
	for _, opts := range []*peer.Options{counting(nil), gathering(nil)} {
		synctest.Test(t, func(t *testing.T) {
			opts.Profile = &peer.Profile{Progress: peer.ProgressDialect{Off: true}}
			raw, _ := peertest.Against(t, opts)
			for _, method := range opts.Handler.(*peer.Registry).Methods() {
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"` + method.Name + `","params":{"_meta":{"io.github.duetrpc/stream":{"token":1},"io.github.duetrpc/feed":{"token":1}}}}`)
				raw.Want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: the protocol has no place for the items of a stream"}}`)
			}
		})
	}
}

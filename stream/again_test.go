package stream_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/stream"
)

// stuck is a Transport that takes no bytes.
type stuck struct{ peer.Transport }

func (s stuck) Write(ctx context.Context, _ ...[]byte) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// reconnecting is a Client whose other ends have opts. The first takes no bytes, and lose
// ends it, where stick is set.
func reconnecting(t *testing.T, opts *peer.Options, stick bool) (c *peer.Client, lose func()) {
	var last *peer.Conn
	n := 0
	c, err := peer.NewClient("", &peer.ClientOptions{Dial: func(context.Context) (peer.Transport, error) {
		a, b := peer.Pipe()
		last = peertest.Start(t, a, opts)
		if n++; n == 1 && stick {
			return stuck{b}, nil
		}
		return b, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); <-c.Done() })
	return c, func() { synctest.Wait(); _ = last.Close() }
}

// The call of a stream that was not sent, or may be sent twice, is made again by a Client,
// and its items come once.
func TestStreamAgain(t *testing.T) {
	for name, sent := range map[string]bool{"not sent": false, "idempotent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, lose := reconnecting(t, counting(nil), true)
				var opts []stream.Option
				if sent {
					opts = append(opts, stream.Calling(peer.Idempotent()))
				} else {
					go func() { _ = c.Call(t.Context(), "x", nil, nil) }() // stands before it
					synctest.Wait()
				}
				s := run.Call(t.Context(), c, ask{1000}, opts...)
				time.AfterFunc(time.Second, lose)
				if items, err := collect(s); !slices.Equal(items, upTo(1000)) || err != nil {
					t.Errorf("%d items, %v", len(items), err)
				}
				if out, err := s.Result(); out != "done" || err != nil {
					t.Errorf("%q, %v", out, err)
				}
			})
		})
	}
}

// After an item no attempt is another's: the loop ends with how the connection did, at once.
func TestStreamNotAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		calls := 0
		run.Handle(&reg, func(ctx context.Context, _ ask, send func(int) error) (string, error) {
			calls++
			_ = send(1)
			<-ctx.Done()
			return "", nil
		})
		c, lose := reconnecting(t, &peer.Options{Handler: &reg}, false)
		s := run.Call(t.Context(), c, ask{}, stream.Calling(peer.Idempotent()))
		time.AfterFunc(time.Second, lose)
		began := time.Now()
		items, err := collect(s)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		var closed *peer.CloseError
		if !slices.Equal(items, upTo(1)) || !errors.As(err, &closed) || calls != 1 {
			t.Errorf("%v, %v after %d calls; want one item, the end of the connection, and one call", items, err, calls)
		}
	})
}

// Two attempts at a time are refused, whatever came.
func TestAttemptsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		hang := func(ctx context.Context) (string, error) {
			time.Sleep(time.Second)
			return "done", nil
		}
		run.Handle(&reg, func(ctx context.Context, _ ask, _ func(int) error) (string, error) { return hang(ctx) })
		feeding := stream.Feed[ask, int, string]("feed")
		feeding.Handle(&reg, func(ctx context.Context, _ ask, _ iter.Seq2[int, error]) (string, error) { return hang(ctx) })
		second := make(chan error, 1)
		a, _ := peertest.Pair(t, &peer.Options{Outgoing: []func(peer.Caller) peer.Caller{func(next peer.Caller) peer.Caller {
			return atOnce{next, second}
		}}}, &peer.Options{Handler: &reg})
		for what, result := range map[string]func() (string, error){
			"stream": run.Call(t.Context(), a, ask{}).Result,
			"feed":   feeding.Call(t.Context(), a, ask{}).Result,
		} {
			if out, err := result(); out != "done" || err != nil {
				t.Errorf("%s: %q, %v", what, out, err)
			}
			if err := <-second; err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("%s: two attempts at a time", what)
			}
		}
	})
}

// atOnce makes a call again while it waits.
type atOnce struct {
	peer.Caller
	second chan<- error
}

func (m atOnce) Call(ctx context.Context, method string, params, result any, opts ...peer.CallOption) error {
	time.AfterFunc(time.Millisecond, func() { m.second <- m.Caller.Call(ctx, method, params, nil, opts...) })
	return m.Caller.Call(ctx, method, params, result, opts...)
}

// A feed that nobody wanted goes to the next connection, one that was wanted does not.
func TestFeedAgain(t *testing.T) {
	for name, wanted := range map[string]bool{"not wanted": false, "wanted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, lose := reconnecting(t, gathering(nil), !wanted)
				f := collecting.Call(t.Context(), c, ask{}, stream.Calling(peer.Idempotent()))
				time.AfterFunc(time.Second, lose)
				var err error
				for i := range 1000 {
					if i == 500 && wanted {
						time.Sleep(time.Minute) // meanwhile it is lost
					}
					if err = f.Send(i + 1); err != nil {
						break
					}
				}
				out, failure := f.Result()
				if wanted {
					var closed *peer.CloseError
					if err == nil || !errors.As(failure, &closed) {
						t.Errorf("Send = %v, Result = %v; want the end of the connection", err, failure)
					}
				} else if err != nil || failure != nil || !slices.Equal(out, upTo(1000)) {
					t.Errorf("%d items, %v, %v", len(out), err, failure)
				}
			})
		})
	}
}

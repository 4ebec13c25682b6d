package resume

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

// What leaves by TryWrite counts as well: a call after it is not said to be sent by what
// acknowledges it.
func TestTryWriteCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{t: t, calm: true, tally: &tally{}, rng: rand.New(rand.NewPCG(1, 1))}
		var reg peer.Registry
		reg.Handle("m", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return 1, nil }))
		sessions := NewSessions(&Options{Park: time.Second})
		var last *cable
		c, err := peer.NewClient("", Client(&peer.ClientOptions{Dial: func(context.Context) (peer.Transport, error) {
			if last != nil {
				return nil, errors.New("down")
			}
			a, b := m.cable()
			last = a.cable
			m.running.Go(func() {
				if s, err := sessions.Accept(peer.WithPrincipal(context.Background(), "somebody"), b); err == nil {
					conn := peer.New(s, &peer.Options{Handler: &reg})
					<-conn.Done()
				}
			})
			return a, nil
		}}, nil))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // one at a time, so that they go by TryWrite, most of them
			if err := conn.Call(t.Context(), "m", nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		last.lose.Do(func() { close(last.gone) }) // and nobody knows yet
		done := make(chan error, 1)
		go func() { done <- conn.Call(context.Background(), "m", nil, nil) }()
		synctest.Wait()
		for _, seen := range last.seen {
			close(seen)
		}
		var failed *peer.CallError
		if err := <-done; !errors.As(err, &failed) || failed.Sent != pending.MaybeSent {
			t.Errorf("%v, want maybe sent", err)
		}
		_ = c.Close()
		<-c.Done()
		m.running.Wait()
	})
}

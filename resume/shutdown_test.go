package resume_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/wsconn"
)

// Shutdown of a session that is lost with messages that never arrived.
func TestShutdownTells(t *testing.T) {
	lies := 0
	const runs = 200
	for range runs {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, &resume.Options{Park: time.Second}, nil)
			c, conn := w.connected()
			defer w.end(c)
			w.socket().deafen()
			if err := conn.Notify(t.Context(), "n", nil); err != nil {
				t.Fatal(err)
			}
			w.setDown(true)
			time.AfterFunc(time.Second, w.cut)
			if err := conn.Shutdown(t.Context()); err == nil {
				lies++
			}
		})
	}
	if lies > 0 {
		t.Errorf("in %d of %d runs Shutdown returned nil though the session was lost and the message with it", lies, runs)
	}
}

// 1001 of a proxy while Shutdown flushes
func TestShutdownGoingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		var reg peer.Registry
		reg.HandleNotification("n", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { got.Add(1); return nil, nil }))
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c, _ := w.connected()
		defer w.end(c)
		w.socket().deafen()
		for range 10 {
			_ = c.Notify(t.Context(), "n", nil)
		}
		there := w.far()
		time.AfterFunc(10*time.Second, func() { _ = there.Close(wsconn.ErrGoingAway) })
		err := c.Shutdown(t.Context())
		if err == nil && got.Load() != 10 {
			t.Errorf("Shutdown says all is done, and %d of 10 arrived", got.Load())
		}
	})
}

// A client that is offline, and has nothing on its way, shuts down at once.
func TestShutdownOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		add.Handle(&reg, sum)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		if _, err := add.Call(t.Context(), c, []int{1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.setDown(true)
		w.cut()
		time.Sleep(time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

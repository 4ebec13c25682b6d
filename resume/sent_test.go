package resume_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
	"github.com/duetrpc/duet/resume"
)

// Cancellations count as messages: a call after them is not said to be sent by what acknowledges them.
func TestCancelsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		w := newWorld(t, &resume.Options{Park: time.Second}, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-started; cancel() }()
			_ = conn.Call(ctx, "slow", nil, nil)
			time.Sleep(time.Second)
		}
		w.socket().deafen()
		maybe := call(conn, "slow")
		synctest.Wait()
		w.setDown(true)
		w.cut()
		var failed *peer.CallError
		if err := <-maybe; !errors.As(err, &failed) || failed.Sent != pending.MaybeSent {
			t.Errorf("%v, want maybe sent", err)
		}
	})
}

// The calls of an array are sent when it is acknowledged.
func TestBatchIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		w := newWorld(t, &resume.Options{Park: time.Second}, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items := []peer.BatchItem{{Method: "slow"}, {Method: "slow"}}
		done := make(chan error, 1)
		go func() { done <- conn.Batch(context.Background(), items) }()
		<-started
		<-started
		time.Sleep(time.Second)
		w.setDown(true)
		w.cut()
		<-done
		for _, item := range items {
			var failed *peer.CallError
			if !errors.As(item.Err, &failed) || failed.Sent != pending.Sent {
				t.Errorf("%v, want sent", item.Err)
			}
		}
	})
}

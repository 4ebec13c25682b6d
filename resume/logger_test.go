package resume_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// usesConn is a log that goes over the connection.
type usesConn struct {
	slog.Handler
	f func(msg string)
}

func (h usesConn) Enabled(context.Context, slog.Level) bool { return true }

func (h usesConn) Handle(_ context.Context, r slog.Record) error {
	h.f(r.Message)
	return nil
}

// A logger may use the connection.
func TestLoggerUsesConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		add.Handle(&reg, sum)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		var c atomic.Pointer[peer.Client]
		var logged, failed atomic.Int64
		o := &resume.Options{Logger: slog.New(usesConn{slog.DiscardHandler, func(msg string) {
			if c := c.Load(); c != nil {
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				if _, err := add.Call(ctx, c, []int{1}); err != nil {
					failed.Add(1)
				}
				logged.Add(1)
			}
		}})}
		cl := w.client(nil, o)
		defer w.end(cl)
		if _, err := cl.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Store(cl)
		time.Sleep(time.Second)
		w.cut()
		time.Sleep(time.Minute)
		if logged.Load() == 0 {
			t.Errorf("the logger waits for the connection, which waits for the logger")
		}
		time.Sleep(2 * time.Hour)
		t.Logf("logged %d failed %d", logged.Load(), failed.Load())
	})
}

// accepting end too
func TestLoggerUsesConnectionThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		add.Handle(&reg, sum)
		var conn atomic.Pointer[peer.Conn]
		var logged, failed atomic.Int64
		o := &resume.Options{Logger: slog.New(usesConn{slog.DiscardHandler, func(msg string) {
			if c := conn.Load(); c != nil && strings.Contains(msg, "socket lost") {
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				if _, err := add.Call(ctx, c, []int{1}); err != nil {
					failed.Add(1)
				}
				logged.Add(1)
			}
		}})}
		w := newWorld(t, o, nil)
		cl := w.client(&peer.ClientOptions{Options: peer.Options{Handler: &reg}}, nil)
		defer w.end(cl)
		if _, err := cl.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		conn.Store(w.conn())
		w.cut()
		time.Sleep(time.Minute)
		if logged.Load() == 0 || failed.Load() > 0 {
			t.Errorf("the logger waits for the connection, which waits for the logger")
		}
		time.Sleep(2 * time.Hour)
		t.Logf("logged %d failed %d", logged.Load(), failed.Load())
	})
}

package wsconn_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/wsconn"
)

// How often a race is run. Each time is short, and no two are the same.
const races = 5

// No data frame follows a close frame (RFC 6455 section 5.5.1), whichever end sends it first and whatever else is
// being written; and what Write and TryWrite said is sent has been sent before it.
func TestNothingFollowsTheCloseFrame(t *testing.T) {
	for _, test := range []struct {
		name  string
		begin func(c *wsconn.Conn, raw net.Conn, client bool)
	}{
		{"this end closes", func(c *wsconn.Conn, raw net.Conn, client bool) { c.Close(nil) }},
		{"the other end closes", func(c *wsconn.Conn, raw net.Conn, client bool) {
			raw.Write(frame{closes, closePayload(1000, "")}.bytes(!client))
		}},
		{"both close", func(c *wsconn.Conn, raw net.Conn, client bool) {
			go raw.Write(frame{closes, closePayload(1000, "")}.bytes(!client))
			c.Close(nil)
		}},
		{"a fault ends it", func(c *wsconn.Conn, raw net.Conn, client bool) {
			raw.Write(frame{0x83, nil}.bytes(!client)) // the library says so, and then this package
		}},
	} {
		for _, client := range []bool{false, true} {
			for _, tcp := range []bool{false, true} {
				t.Run(test.name+" "+endName(client, tcp), func(t *testing.T) {
					for i := range races {
						run := func(t *testing.T) {
							c, raw := rawEnd(t, client, tcp, &wsconn.Options{PingInterval: -1, WriteTimeout: -1})
							raceTheClose(t, c, raw, client, 40, i*8, func() { test.begin(c, raw, client) })
						}
						if tcp {
							run(t)
						} else {
							synctest.Test(t, run)
						}
					}
				})
			}
		}
	}
}

// raceTheClose has many write to c, each so many times, and begin run once the other end has seen some messages.
func raceTheClose(t *testing.T, c *wsconn.Conn, raw net.Conn, client bool, times, after int, begin func()) {
	defer raw.Close()
	end := readAll(c)
	var writers sync.WaitGroup
	var sent atomic.Int64 // messages of which it was said that they are
	for i := range 3 {
		writers.Go(func() {
			// The last is in two pieces: its beginning in the buffer, and the rest where it is.
			msgs := [][]byte{bytes.Repeat([]byte{'w'}, 10*i), nil, bytes.Repeat([]byte{'v'}, i%2*33_000)}
			for j := 0; j < times && c.Write(context.Background(), msgs...) == nil; j++ {
				sent.Add(int64(len(msgs)))
			}
		})
		writers.Go(func() {
			msg := bytes.Repeat([]byte{'t'}, 500*i)
			for range times {
				took, flushed := c.TryWrite(msg)
				if took && !flushed && c.Write(context.Background()) != nil {
					return
				}
				if took {
					sent.Add(1)
				} else if c.Write(context.Background()) != nil { // it is over, or somebody else's turn
					return
				}
			}
		})
	}
	var begun sync.WaitGroup
	var seen int64
	err := readToClose(raw, func(f frame) {
		if seen++; seen == int64(after)+1 {
			begun.Go(begin)
		}
		if len(f.payload) > 0 && bytes.Count(f.payload, f.payload[:1]) != len(f.payload) {
			t.Errorf("message = %.40q of %d bytes, want one byte repeated", f.payload, len(f.payload))
		}
	}, func() {
		begun.Wait()
		go func() {
			raw.Write(frame{closes, closePayload(1000, "")}.bytes(!client))
			if half, ok := raw.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
		}()
	})
	if err != nil {
		t.Errorf("stream = %v", err)
	}
	raw.Close()
	<-end
	if seen < int64(after) {
		t.Errorf("%d messages before the close frame, want at least %d", seen, after)
	}
	writers.Wait()
	<-c.Done()
	if seen < sent.Load() {
		t.Errorf("%d messages have come, and %d are said to have been sent", seen, sent.Load())
	}
}

// However much is being written, a close frame that comes is answered.
func TestCloseIsAnsweredByBusyEnd(t *testing.T) {
	for range races {
		c, raw := rawEnd(t, true, true, &wsconn.Options{PingInterval: -1, WriteTimeout: -1})
		raceTheClose(t, c, raw, true, 1<<30, 5, func() { raw.Write(frame{closes, closePayload(1000, "")}.bytes(false)) })
	}
}

package wsconn_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/wsconn"
)

// A grower makes room as ReadGrow asks for it, and holds it to its word.
type grower struct {
	t     *testing.T
	sent  *atomic.Int64 // bytes of the stream, at least those that have arrived
	calls atomic.Int64
	made  atomic.Int64 // bytes of the last room
}

func (g *grower) grow(buf []byte, n int) []byte {
	g.calls.Add(1)
	sent := g.sent.Load()
	if n <= 0 || int64(n) > max(16<<10, 16*sent) {
		g.t.Errorf("grow(%d bytes, %d) where %d have arrived", len(buf), n, sent)
	}
	g.made.Store(int64(n))
	grown := make([]byte, len(buf), len(buf)+n)
	copy(grown, buf)
	return grown
}

// sendCounted writes p in pieces, and counts each before it goes.
func sendCounted(w io.Writer, p []byte, pieces int, sent *atomic.Int64) {
	for len(p) > 0 {
		n := min(len(p), pieces)
		sent.Add(int64(n))
		w.Write(p[:n])
		p = p[n:]
	}
}

// What comes decides how much room is made, not what a header promises.
func TestReadGrowAsItComes(t *testing.T) {
	const size = 1 << 20
	payload := randomBytes(rand.New(rand.NewPCG(7, 8)), size)
	for _, test := range []struct {
		name  string
		first byte
		over  string // which stream
	}{
		{"one frame over a pipe", text, "pipe"}, {"fragments over a pipe", textBegins, "pipe"},
		{"one frame over TCP", text, "TCP"}, {"fragments over TCP", textBegins, "TCP"},
	} {
		read := func(t *testing.T, c *wsconn.Conn, raw net.Conn, wait func()) {
			defer raw.Close()
			var sent atomic.Int64
			g := &grower{t: t, sent: &sent}
			type result struct {
				msg []byte
				err error
			}
			done := make(chan result, 1)
			go func() {
				msg, err := c.ReadGrow(context.Background(), []byte("kept")[:4:4], g.grow)
				done <- result{msg, err}
			}()
			wait()
			if n := g.calls.Load(); n != 0 {
				t.Errorf("grow called %d times before anything has come", n)
			}
			whole := appendFrame(nil, frame{test.first, payload}, -1, fixedKeys())
			sendCounted(raw, whole[:14], 1, &sent)
			wait()
			if n, made := g.calls.Load(), g.made.Load(); n > 1 || made > 16<<10 {
				t.Errorf("grow called %d times, for %d bytes, by a header alone", n, made)
			}
			sendCounted(raw, whole[14:], 1000, &sent)
			if test.first == textBegins {
				sendCounted(raw, frame{ends, nil}.bytes(true), 10, &sent)
			}
			got := <-done
			if got.err != nil || !bytes.Equal(got.msg[:4], []byte("kept")) || !bytes.Equal(got.msg[4:], payload) {
				t.Errorf("ReadGrow = %d bytes, %v, want %d with what was there in front", len(got.msg), got.err, 4+size)
			}
			go io.Copy(io.Discard, raw)
			c.Close(nil)
			raw.Close()
			<-c.Done()
		}
		t.Run(test.name, func(t *testing.T) {
			if test.over == "TCP" {
				raw, _, c := rawSocket(t, &wsconn.Options{PingInterval: -1})
				read(t, c, raw, func() {})
				return
			}
			synctest.Test(t, func(t *testing.T) {
				c, raw := acceptRaw(t, &wsconn.Options{PingInterval: -1})
				read(t, c, raw, synctest.Wait)
			})
		})
	}
}

// Where there is room, nobody is asked for more; what stands in front stays.
func TestReadGrowWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			name       string
			have, room int // bytes
			first      byte
			size       int
			grows      bool
		}{
			{"nothing into nothing", 0, 0, text, 0, false},
			{"nothing behind something", 5, 0, text, 0, false},
			{"just fits", 5, 300, text, 300, false},
			{"one byte over", 5, 300, text, 301, true},
			{"into nothing", 0, 0, text, 1, true},
			{"large and just fits", 5, 200_000, text, 200_000, false},
			{"large and over", 5, 199_999, text, 200_000, true},
			{"fragments that just fit and end in nothing", 5, 200, textBegins, 200, false},
		} {
			c, raw := acceptRaw(t, &wsconn.Options{PingInterval: -1})
			rng := rand.New(rand.NewPCG(9, uint64(test.size)))
			before, payload := randomBytes(rng, test.have), randomBytes(rng, test.size)
			go func() {
				raw.Write(appendFrame(nil, frame{test.first, payload}, -1, rng))
				if test.first == textBegins {
					raw.Write(frame{ends, nil}.bytes(true))
				}
			}()
			sent := new(atomic.Int64)
			sent.Store(1 << 40) // how much it asks for is another test's
			g := &grower{t: t, sent: sent}
			buf := append(make([]byte, 0, test.have+test.room), before...)
			got, err := c.ReadGrow(t.Context(), buf, g.grow)
			if err != nil || !bytes.Equal(got, append(before, payload...)) {
				t.Errorf("%s: ReadGrow = %d bytes, %v, want %d", test.name, len(got), err, test.have+test.size)
			}
			if grows := g.calls.Load() > 0; grows != test.grows && test.first == text {
				t.Errorf("%s: grow called %d times, want any: %v", test.name, g.calls.Load(), test.grows)
			}
			readAll(c)
			raw.Close()
			<-c.Done()
		}
	})
}

package wsconn_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/wsconn"
)

const chunk = 128 << 10 // what one write takes at most

// rawEnd returns an accepted or a dialed end, and the bare stream of the other.
func rawEnd(t *testing.T, client, tcp bool, opts *wsconn.Options) (*wsconn.Conn, net.Conn) {
	t.Helper()
	switch {
	case client && tcp:
		return dialSocketRaw(t, opts, nil)
	case tcp:
		raw, _, c := rawSocket(t, opts) // nothing is sent before the test does it, so its bufio.Reader is empty
		t.Cleanup(func() { raw.Close() })
		return c, raw
	case client:
		c, raw, err := dialRaw(t, opts)
		if err != nil {
			t.Fatalf("Dial = %v", err)
		}
		return c, raw
	}
	return acceptRaw(t, opts)
}

// endName names a case of rawEnd.
func endName(client, tcp bool) string {
	return map[bool]string{false: "accepted", true: "dialed"}[client] + map[bool]string{false: " over a pipe", true: " over TCP"}[tcp]
}

// Messages are gathered: they leave by as few writes as there are full buffers. One read of a net.Pipe returns what
// one write brought.
func TestWritesAreGathered(t *testing.T) {
	for _, client := range []bool{false, true} {
		for _, test := range []struct {
			name        string
			count, size int // messages, bytes
			writes      int
		}{
			{"none", 0, 0, 0},
			{"one", 1, 100, 1},
			{"many", 1000, 50, 1},
			{"more than a buffer", 300, 1000, 3},
		} {
			t.Run(endName(client, false)+" "+test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, raw := rawEnd(t, client, false, &wsconn.Options{PingInterval: -1})
					msgs := make([][]byte, test.count)
					for i := range msgs {
						msgs[i] = randomBytes(fixedKeys(), test.size)
					}
					written := make(chan error, 1)
					go func() { written <- c.Write(t.Context(), msgs...); raw.Close() }()
					var all []byte
					writes, buf := 0, make([]byte, 1<<20)
					for {
						n, err := raw.Read(buf)
						if err != nil {
							break
						}
						all = append(all, buf[:n]...)
						writes++
					}
					if err := <-written; err != nil || writes != test.writes {
						t.Errorf("Write of %d messages = %v by %d writes, want %d", test.count, err, writes, test.writes)
					}
					r := bytes.NewReader(all)
					for i, want := range msgs {
						if f, err := readFrame(r); err != nil || f.first != text || !bytes.Equal(f.payload, want) {
							t.Fatalf("frame %d = %x with %d bytes, %v, want text with %d", i, f.first, len(f.payload), err, len(want))
						}
					}
					if r.Len() > 0 {
						t.Errorf("%d bytes behind the last frame", r.Len())
					}
					readAll(c)
					<-c.Done()
				})
			})
		}
	}
}

// Whatever place a frame has in the buffers, it arrives whole, and what was to be written is as it was.
func TestWriteAroundChunk(t *testing.T) {
	var writes [][]int // sizes of the messages
	for d := -15; d <= 15; d++ {
		writes = append(writes, []int{chunk + d, 5})
		if d%7 == 0 {
			writes = append(writes, []int{2*chunk + d, 0, 1}, []int{32<<10 + d}, []int{3, 32<<10 + d, 4, 65536 + d})
		}
		// The buffer is filled to within d of its end, where the next frame begins.
		writes = append(writes, []int{20_000, 20_000, 20_000, 20_000, 20_000, 20_000, chunk - 6*20_004 - 20 + d, 300})
	}
	rng := rand.New(rand.NewPCG(10, 11))
	for range 10 {
		var sizes []int
		for range rng.IntN(40) {
			sizes = append(sizes, rng.IntN([]int{200, 2000, 50_000}[rng.IntN(3)]))
		}
		writes = append(writes, sizes)
	}
	stock := randomBytes(rng, 3*chunk)
	for _, client := range []bool{false, true} {
		for _, tcp := range []bool{true} { // over a pipe the code is the same
			t.Run(endName(client, tcp), func(t *testing.T) {
				check := func(t *testing.T) {
					c, raw := rawEnd(t, client, tcp, &wsconn.Options{PingInterval: -1, WriteTimeout: -1})
					before := bytes.Clone(stock)
					at := 0
					part := func(n int) []byte { // another one each time
						at = (at + 7919) % (len(stock) - n)
						return stock[at : at+n]
					}
					go func() {
						for _, sizes := range writes {
							var msgs [][]byte
							for _, n := range sizes {
								msgs = append(msgs, part(n))
							}
							if err := c.Write(context.Background(), msgs...); err != nil {
								t.Errorf("Write = %v", err)
							}
						}
						c.Close(nil)
					}()
					expect := 0
					for i, sizes := range writes {
						for j, n := range sizes {
							expect = (expect + 7919) % (len(before) - n)
							f, err := readFrame(raw)
							if err != nil || f.first != text || !bytes.Equal(f.payload, before[expect:expect+n]) {
								t.Fatalf("message %d of %v, the write %d, = %x with %d bytes, %v", j, sizes, i, f.first, len(f.payload), err)
							}
						}
					}
					if f, err := readFrame(raw); err != nil || f.first != closes {
						t.Errorf("frame behind = %x, %v, want close", f.first, err)
					}
					raw.Close()
					<-c.Done()
					if !bytes.Equal(stock, before) {
						t.Error("Write changed what it was given")
					}
				}
				if tcp {
					check(t)
				} else {
					synctest.Test(t, check)
				}
			})
		}
	}
}

// A key must not be foretold from the ones before (RFC 6455 section 5.3): here, each frame has one of its own.
func TestMaskingKeysDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := rawEnd(t, true, false, &wsconn.Options{PingInterval: -1})
		const frames = 1000
		go func() {
			for range frames / 10 {
				c.Write(t.Context(), make([][]byte, 9)...)
				c.Write(t.Context(), nil)
			}
		}()
		keys := map[[4]byte]bool{}
		for range frames {
			var head [6]byte // of an empty frame
			if _, err := io.ReadFull(raw, head[:]); err != nil || head[0] != text || head[1] != 0x80 {
				t.Fatalf("frame = %x, %v, want an empty masked text", head, err)
			}
			keys[[4]byte(head[2:])] = true
		}
		if len(keys) < frames-2 {
			t.Errorf("%d different keys in %d frames", len(keys), frames)
		}
		readAll(c)
		raw.Close()
		<-c.Done()
	})
}

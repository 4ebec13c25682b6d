package wsconn_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/wsconn"
)

// Connections that share their buffers do not see each other's bytes, and what was read stays as it is. With the
// build tag duetpoison a buffer that is given back too early shows as well.
func TestBuffersAreShared(t *testing.T) {
	opts := &wsconn.Options{Buffers: &wsconn.Buffers{}, PingInterval: -1, WriteTimeout: -1}
	exchange := func(t *testing.T, pair func() (a, b *wsconn.Conn)) {
		var all sync.WaitGroup
		for i := range 3 {
			a, b := pair()
			var both sync.WaitGroup
			for j, ends := range [][2]*wsconn.Conn{{a, b}, {b, a}} {
				from, to := ends[0], ends[1]
				seed := uint64(10*i + j)
				both.Go(func() { sendRandom(from, rand.New(rand.NewPCG(seed, 0))) })
				both.Go(func() {
					if err := wantRandom(to, rand.New(rand.NewPCG(seed, 0))); err != nil {
						t.Error(err)
					}
				})
			}
			all.Go(func() {
				both.Wait()
				ends := []<-chan error{readAll(a), readAll(b)}
				a.Close(nil)
				<-ends[0]
				<-ends[1]
				<-a.Done()
				<-b.Done()
			})
		}
		all.Wait()
	}
	t.Run("over TCP", func(t *testing.T) {
		exchange(t, func() (a, b *wsconn.Conn) { return socketPair(t, opts, opts) })
	})
	t.Run("over pipes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			exchange(t, func() (a, b *wsconn.Conn) { return pair(t, opts, opts) })
		})
	})
}

// randomMessages is how many sendRandom sends.
const randomMessages = 30

// randomMessage is one byte over and over, of a length that is small more often than not.
func randomMessage(rng *rand.Rand) []byte {
	return bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN([]int{100, 100, 5000, 200_000}[rng.IntN(4)]))
}

func sendRandom(c *wsconn.Conn, rng *rand.Rand) {
	for range randomMessages {
		msg := randomMessage(rng)
		if took, flushed := c.TryWrite(msg); !took {
			c.Write(context.Background(), msg)
		} else if !flushed {
			c.Write(context.Background())
		}
	}
}

func wantRandom(c *wsconn.Conn, rng *rand.Rand) error {
	var got [][]byte
	for i := range randomMessages {
		msg, err := c.Read(context.Background(), nil)
		if err != nil {
			return fmt.Errorf("Read of message %d = %w", i, err)
		}
		got = append(got, msg)
	}
	for i, msg := range got { // only now, when the buffers have gone through other hands
		if want := randomMessage(rng); !bytes.Equal(msg, want) {
			return fmt.Errorf("Read of message %d = %d bytes, beginning %.10x, want %d of %.10x", i, len(msg), msg, len(want), want)
		}
	}
	return nil
}

package wsconn_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/duetrpc/duet/wsconn"
)

// A compressed message leaves in pieces, and one in 256 of them begins as a close frame does. None may be taken
// for one: nothing would follow it.
func TestCompressedPiecesAreNoCloseFrame(t *testing.T) {
	compressed := &wsconn.Options{Compression: true, PingInterval: -1}
	a, b := socketPair(t, compressed, compressed)
	defer func() { a.Close(nil); b.Close(nil); <-a.Done(); <-b.Done() }()
	go func() {
		for {
			msg, err := b.Read(context.Background(), nil)
			if err != nil || b.Write(context.Background(), msg) != nil {
				return
			}
		}
	}()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		half := make([]byte, 1500)
		for j := range half {
			half[j] = byte(random.Uint32())
		}
		msg := []byte(hex.EncodeToString(half))
		if err := a.Write(context.Background(), msg); err != nil {
			t.Fatalf("message %d: Write = %v", i, err)
		}
		if got, err := a.Read(context.Background(), nil); err != nil || !bytes.Equal(got, msg) {
			t.Fatalf("message %d: Read = %d bytes, %v, want the same %d", i, len(got), err, len(msg))
		}
	}
}

// TryWrite returns whatever the size of the message, also where Write would send it from where it is.
func TestTryWriteNeverWaits(t *testing.T) {
	for _, size := range []int{100, 32 << 10, 64 << 10, 128<<10 - 14} {
		_, b := socketPair(t, &wsconn.Options{PingInterval: -1}, &wsconn.Options{PingInterval: -1, WriteTimeout: -1})
		msg := make([]byte, size)
		tries := 0
		for {
			if took, flushed := b.TryWrite(msg); !took || !flushed {
				if !took {
					t.Errorf("TryWrite of %d bytes refused try %d, want it to take a part at last", size, tries)
				}
				break
			}
			tries++ // the other end reads nothing, so this ends
		}
		if tries == 0 {
			t.Errorf("TryWrite of %d bytes took not even one message", size)
		}
		b.Close(wsconn.ErrInternal)
	}
}

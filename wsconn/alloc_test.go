//go:build !race

package wsconn_test

import (
	"context"
	"io"
	"testing"

	"github.com/duetrpc/duet/wsconn"
)

// Neither a Read into a buffer with room nor a Write allocates, the library below included.
func TestAllocations(t *testing.T) {
	c, raw := acceptRaw(t, &wsconn.Options{PingInterval: -1})
	defer raw.Close()
	sent := frame{text, make([]byte, 1000)}.bytes(true)
	buf := make([]byte, 0, 1000) // a message that just fits
	steps := make(chan struct{})
	go func() {
		for range steps {
			raw.Write(sent)
		}
		io.Copy(io.Discard, raw)
	}()
	got := testing.AllocsPerRun(100, func() {
		steps <- struct{}{}
		if _, err := c.Read(context.Background(), buf); err != nil {
			t.Errorf("Read = %v", err)
		}
	})
	if got != 0 {
		t.Errorf("Read makes %v allocations, want 0", got)
	}
	close(steps)
	msg := make([]byte, 1000)
	if got := testing.AllocsPerRun(100, func() { c.Write(context.Background(), msg, msg) }); got != 0 {
		t.Errorf("Write makes %v allocations, want 0", got)
	}
	c.Close(nil)
	raw.Close()
	<-c.Done()
}

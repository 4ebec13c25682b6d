package resume_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/resume"
)

// What is acknowledged, and when.
func TestAcknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := notes()
		w := newWorld(t, nil, opts)
		r := w.raw()
		_ = opened(t, r)
		r.Send(note(0))
		began := time.Now()
		r.Want("ack 1")
		if took := time.Since(began); took != 20*time.Millisecond {
			t.Errorf("one message was acknowledged after %v", took)
		}
		began = time.Now()
		for i := range 256 {
			r.Send(note(i))
		}
		r.Want("ack 257")
		if took := time.Since(began); took != 0 {
			t.Errorf("256 messages were acknowledged after %v", took)
		}
		for range 40 {
			r.Send(note(0))
		}
		synctest.Wait()
		_ = w.conn().Notify(t.Context(), "n", []int{7})
		r.Want("ack 297", note(7)) // with what goes anyway
		r.Send("ack 1")
		began = time.Now()
		r.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":[1],"x":%q}`, strings.Repeat("x", 256<<10)))
		r.Want("ack 298")
		if took := time.Since(began); took != 0 {
			t.Errorf("256 KiB were acknowledged after %v", took)
		}
		time.Sleep(time.Minute)
		if more := r.Waiting(); len(more) != 0 {
			t.Errorf("and %q", more)
		}
		_ = w.conn().Close()
		<-w.conn().Done()
	})
}

// A socket over which nothing is acknowledged is given up, and the next handshake tells.
func TestStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{Buffer: 4 << 10}, nil)
		r := w.raw()
		id := opened(t, r)
		synctest.Wait()
		conn := w.conn()
		raw, _ := json.Marshal([]string{strings.Repeat("x", 3000)})
		for range 3 {
			_ = conn.Notify(t.Context(), "n", json.RawMessage(raw))
		}
		r.Receive()
		began := time.Now()
		time.Sleep(59 * time.Second)
		closed(t, r, 1013)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("given up after %v", took)
		}
		r = w.raw()
		r.Send("resume " + id + " 1 1")
		r.Want("resumed 0")
		r.Receive()
		r.Send("ack 2")
		r.Receive()
		r.Send("ack 3")
		_ = conn.Close()
		<-conn.Done()
	})
}

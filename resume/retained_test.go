package resume

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestRetained compares two that share their memory with slices, also while that is read.
func TestRetained(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	pool := &sync.Pool{}
	type end struct {
		r      retained
		want   [][]byte
		pinned [][]byte // what was pinned, as it was
		read   *chunk
	}
	ends := [2]end{{r: retained{pool: pool}}, {r: retained{pool: pool}}}
	for step := range 20000 {
		e := &ends[rng.IntN(2)]
		switch k := rng.IntN(10); {
		case k < 5 && e.read == nil:
			size := rng.IntN(2000)
			if rng.IntN(50) == 0 {
				size = chunkSize + rng.IntN(chunkSize)
			}
			msg := bytes.Repeat([]byte{byte(rng.IntN(256))}, size)
			e.r.add(msg)
			e.want = append(e.want, msg)
		case k < 6 && e.read == nil:
			e.r.add(make([]byte, rng.IntN(2*chunkSize)))
			e.r.undo()
		case k < 8:
			n := rng.IntN(len(e.want) + 1)
			e.r.acknowledge(e.r.acked + uint64(n))
			e.want = e.want[n:]
		case k == 8 && e.read == nil && e.r.head != nil:
			e.pinned = e.want
			e.read = e.r.pin()
		case e.read != nil:
			var got [][]byte
			for c := e.read; c != nil; c = c.next {
				got = append(got, c.messages()...)
			}
			same(t, seed, step, got, e.pinned)
			e.r.unpin()
			e.read = nil
		}
		if e.read == nil {
			var got [][]byte
			bytes := int64(0)
			for c := e.r.head; c != nil; c = c.next {
				got = append(got, c.messages()...)
			}
			for _, msg := range got {
				bytes += int64(len(msg))
			}
			same(t, seed, step, got, e.want)
			if bytes != e.r.bytes || e.r.last-e.r.acked != uint64(len(e.want)) {
				t.Fatalf("seed %d, step %d: %d bytes of %d messages, counted %d of %d",
					seed, step, bytes, len(e.want), e.r.bytes, e.r.last-e.r.acked)
			}
			if len(e.want) == 0 && e.r.head != nil {
				t.Fatalf("seed %d, step %d: memory for nothing", seed, step)
			}
		}
	}
}

func same(t *testing.T, seed uint64, step int, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("seed %d, step %d: %d messages, want %d", seed, step, len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("seed %d, step %d: message %d is another", seed, step, i)
		}
	}
}

//go:build duetpoison

package wsconn

import "testing"

// A buffer that is given back holds nothing of what was in it.
func TestPoison(t *testing.T) {
	var buffers Buffers
	b := buffers.take()
	b[0], b[chunk-1] = 1, 1
	buffers.give(b)
	if b[0] != 0xDB || b[chunk-1] != 0xDB {
		t.Errorf("a buffer that was given back = %x ... %x, want db", b[0], b[chunk-1])
	}
}

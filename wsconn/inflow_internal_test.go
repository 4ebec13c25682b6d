package wsconn

import "testing"

// A connection that waits in the middle of a header keeps those bytes and no buffer: one byte of each of many
// connections would otherwise cost 128 KiB each.
func TestPartOfAHeaderHoldsNoBuffer(t *testing.T) {
	f := &inflow{buffers: &Buffers{}}
	copy(f.room(), "\x81\x85\x01")
	f.extend(3)
	f.giveBack() // as where there was nothing more to read
	if f.lent != nil || string(f.unread) != "\x81\x85\x01" {
		t.Errorf("lent %v, unread %q, want no buffer and the bytes kept", f.lent != nil, f.unread)
	}
	copy(f.room(), "\x02")
	f.extend(1)
	if string(f.unread) != "\x81\x85\x01\x02" {
		t.Errorf("unread %q, want the rest of the header behind the part", f.unread)
	}
}

// A stream that cannot be waited for without a buffer is waited for with a small one, also when the last read
// filled it.
func TestWaitingWithASmallBuffer(t *testing.T) {
	f := &inflow{buffers: &Buffers{}}
	for range 2 {
		got := f.waiting()
		if f.lent != nil || len(got) != idleBuffer {
			t.Fatalf("waiting gives %d bytes, of a large buffer: %v; want %d of its own", len(got), f.lent != nil, idleBuffer)
		}
		f.extend(len(got))
		f.took(len(got))
	}
}

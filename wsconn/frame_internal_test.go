package wsconn

import (
	"bytes"
	"fmt"
	"testing"
)

func TestMask(t *testing.T) {
	key := [4]byte{0x12, 0x34, 0x56, 0x9A}
	for offset := range 10 {
		for n := range 71 {
			text := make([]byte, n)
			want := make([]byte, n+2) // with something on both sides, which must stay
			for i := range text {
				text[i] = byte(i * 7)
				want[i+1] = text[i] ^ key[(offset+i)%4]
			}
			got := make([]byte, n+2)
			mask(got[1:n+1], text, key, offset)
			if !bytes.Equal(got, want) {
				t.Errorf("mask of %d bytes at %d = %x, want %x", n, offset, got, want)
			}
			mask(text, text, key, offset)
			if !bytes.Equal(text, want[1:n+1]) {
				t.Errorf("mask in place of %d bytes at %d = %x, want %x", n, offset, text, want[1:n+1])
			}
		}
	}
}

// Every length at which the form of a header changes, read back from every part of it.
func TestHeader(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 65535, 65536, 1 << 30} {
		for _, key := range [][]byte{nil, {1, 2, 3, 4}} {
			t.Run(fmt.Sprint(n, key), func(t *testing.T) {
				b := appendTextHeader([]byte("head"), n, key)[4:]
				for i := range b {
					if h, ok := parseHeader(b[:i]); ok {
						t.Errorf("parseHeader(%x) = %+v, want false: it is cut short", b[:i], h)
					}
				}
				h, ok := parseHeader(append(b, "payload"...))
				if !ok || h.first != 0x81 || h.length != int64(n) || h.size != len(b) || !h.short || h.masked != (key != nil) ||
					key != nil && !bytes.Equal(h.key[:], key) {
					t.Errorf("parseHeader(%x) = %+v, %v, want %d bytes and key %x", b, h, ok, n, key)
				}
				if h.whole(true) != (key == nil) || h.whole(false) != (key != nil) {
					t.Errorf("whole = %v at a dialed end, %v at an accepted one", h.whole(true), h.whole(false))
				}
			})
		}
	}
}

// The dialing end's keys are used once each (RFC 6455 section 5.3), also over the end of the randomness in stock.
func TestKeysAreUsedOnce(t *testing.T) {
	c := newConn(Options{}, true)
	seen := map[[4]byte]bool{}
	for range 1000 {
		seen[[4]byte(c.key())] = true
	}
	if len(seen) < 998 { // two of a thousand random keys are the same one in eight thousand times
		t.Errorf("%d different keys of 1000", len(seen))
	}
	if key := newConn(Options{}, false).key(); key != nil {
		t.Errorf("key of an accepted end = %x, want none", key)
	}
}

package wsconn

import (
	"encoding/binary"
	"math/bits"
)

// Parts of the first two bytes of a frame (RFC 6455 section 5.2).
const (
	bitFin      = 0x80
	bitsRSV     = 0x70
	bitsOpcode  = 0x0F
	bitMasked   = 0x80
	opText      = 0x1
	opBinary    = 0x2
	opClose     = 0x8
	maxHeader   = 14 // bytes
	length16    = 126
	length64    = 127
	maxLength16 = 1<<16 - 1
)

// A header is the beginning of a frame, as it stands on the wire.
type header struct {
	first  byte
	masked bool
	key    [4]byte
	size   int   // of the header itself, in bytes
	length int64 // of the payload; negative where the highest bit is set, which no frame may have
	short  bool  // the length takes no more bytes than it must
}

// parseHeader reads a header from the front of b. It reports false while b is too short.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < 2 {
		return h, false
	}
	h.first, h.masked, h.size = b[0], b[1]&bitMasked != 0, 2
	switch n := b[1] &^ bitMasked; n {
	case length16:
		h.size += 2
		if len(b) < h.size {
			return h, false
		}
		h.length = int64(binary.BigEndian.Uint16(b[2:]))
		h.short = h.length >= length16
	case length64:
		h.size += 8
		if len(b) < h.size {
			return h, false
		}
		h.length = int64(binary.BigEndian.Uint64(b[2:]))
		h.short = h.length > maxLength16
	default:
		h.length, h.short = int64(n), true
	}
	if h.masked {
		if len(b) < h.size+len(h.key) {
			return h, false
		}
		h.size += copy(h.key[:], b[h.size:])
	}
	return h, true
}

// whole reports whether h begins a message of one frame that needs nothing of the library: data, unfragmented,
// not compressed, masked as it must be, its length written as it must be.
func (h *header) whole(client bool) bool {
	op := h.first & bitsOpcode
	return h.first&(bitFin|bitsRSV) == bitFin && (op == opText || op == opBinary) && h.masked != client && h.short && h.length >= 0
}

// appendTextHeader appends the header of an unfragmented text frame of n bytes, with key where it is not nil.
func appendTextHeader(dst []byte, n int, key []byte) []byte {
	masked := byte(0)
	if key != nil {
		masked = bitMasked
	}
	switch {
	case n < length16:
		dst = append(dst, bitFin|opText, masked|byte(n))
	case n <= maxLength16:
		dst = append(dst, bitFin|opText, masked|length16)
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	default:
		dst = append(dst, bitFin|opText, masked|length64)
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return append(dst, key...)
}

// mask fills dst with src, which is as long and may be dst itself, under key. The first byte is at offset in the
// payload (RFC 6455 section 5.3).
func mask(dst, src []byte, key [4]byte, offset int) {
	k := bits.RotateLeft32(binary.LittleEndian.Uint32(key[:]), -8*(offset%4))
	k64 := uint64(k)<<32 | uint64(k)
	for len(src) >= 32 && len(dst) >= 32 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src)^k64)
		binary.LittleEndian.PutUint64(dst[8:], binary.LittleEndian.Uint64(src[8:])^k64)
		binary.LittleEndian.PutUint64(dst[16:], binary.LittleEndian.Uint64(src[16:])^k64)
		binary.LittleEndian.PutUint64(dst[24:], binary.LittleEndian.Uint64(src[24:])^k64)
		dst, src = dst[32:], src[32:]
	}
	for len(src) >= 8 && len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src)^k64)
		dst, src = dst[8:], src[8:]
	}
	for i := range src {
		dst[i] = src[i] ^ byte(k)
		k = bits.RotateLeft32(k, -8)
	}
}

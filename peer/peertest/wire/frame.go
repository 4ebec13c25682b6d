package wire

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// opcode is the kind of a frame (RFC 6455 section 5.2).
type opcode byte

const (
	opContinuation opcode = 0x0
	opText         opcode = 0x1
	opBinary       opcode = 0x2
	opClose        opcode = 0x8
	opPing         opcode = 0x9
	opPong         opcode = 0xA
)

func (o opcode) control() bool { return o&0x8 != 0 }

// maxControl is the longest payload of a control frame (RFC 6455 section 5.5).
const maxControl = 125

// maxMessage bounds what is read for one message, so that a faulty server
// costs the runner a failed case and not its memory.
const maxMessage = 16 << 20

// frame is one WebSocket frame. Nothing keeps it from being illegal.
type frame struct {
	fin      bool
	rsv      byte // the reserved bits where they stand in the first byte
	op       opcode
	unmasked bool
	payload  []byte
}

// append writes f as a client writes frames: masked, unless it must not be.
func (f frame) append(b []byte) []byte {
	// FIN, the reserved bits and the opcode share the first byte.
	first := f.rsv | byte(f.op)
	if f.fin {
		first |= 0x80
	}
	b = append(b, first)
	mask := byte(0x80)
	if f.unmasked {
		mask = 0
	}
	// The shortest of the three forms of the length (RFC 6455 section 5.2).
	// A control frame may be given more than it can hold: a case asks for that.
	switch n := len(f.payload); {
	case n <= maxControl:
		b = append(b, mask|byte(n))
	case n <= 0xFFFF:
		b = binary.BigEndian.AppendUint16(append(b, mask|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, mask|127), uint64(n))
	}
	if f.unmasked {
		return append(b, f.payload...)
	}
	// A fresh key for each frame (RFC 6455 section 5.3).
	var key [4]byte
	rand.Read(key[:]) // never fails, by its contract
	b = append(b, key[:]...)
	b = slices.Grow(b, len(f.payload))
	for i, c := range f.payload {
		b = append(b, c^key[i%4])
	}
	return b
}

// violation is what a server did against RFC 6455.
type violation string

func (v violation) Error() string { return string(v) }

// readFrame reads one frame of a server. Any error but a violation is the end
// of the stream.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [10]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return frame{}, err
	}
	f := frame{fin: head[0]&0x80 != 0, rsv: head[0] & 0x70, op: opcode(head[0] & 0x0F), unmasked: true}
	switch {
	case f.rsv != 0:
		return f, violation("a frame with a reserved bit (RFC 6455 section 5.2)")
	case head[1]&0x80 != 0:
		return f, violation("a masked frame (RFC 6455 section 5.1)")
	case f.op.control() && !f.fin:
		return f, violation("a control frame in fragments (RFC 6455 section 5.5)")
	case f.op > opBinary && f.op < opClose || f.op > opPong:
		return f, violation(fmt.Sprintf("a frame with opcode %#x (RFC 6455 section 5.2)", byte(f.op)))
	}
	// The mask bit is 0 here, so the rest of the byte is the length.
	n := uint64(head[1])
	if n > maxControl && f.op.control() {
		return f, violation("a control frame longer than 125 bytes (RFC 6455 section 5.5)")
	}
	if n > maxControl {
		size := 2
		if n == 127 {
			size = 8
		}
		if _, err := io.ReadFull(r, head[2:2+size]); err != nil {
			return f, err
		}
		n = 0
		for _, c := range head[2 : 2+size] {
			n = n<<8 | uint64(c)
		}
	}
	if n > maxMessage {
		return f, violation(fmt.Sprintf("a frame of %d bytes, more than is read here", n))
	}
	f.payload = make([]byte, n)
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

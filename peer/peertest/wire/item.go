package wire

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
)

// Item is one step of a case: frames to send, or something to wait for. It is
// made by Parse.
type Item struct {
	src     string
	frames  []frame
	wait    int    // further messages to wait for
	capture string // name under which the id of a request is kept
	method  string // method of that request
}

// String returns the item as it stands in the case.
func (it Item) String() string { return it.src }

// textFrame is a whole text message in one frame.
func textFrame(s string) frame { return frame{fin: true, op: opText, payload: []byte(s)} }

// itemOf reads an element of send. The member that is there decides what the
// item is; a member that does not go with it is an error.
func itemOf(v value) (Item, error) {
	it := Item{src: v.String()}
	if v.kind == text {
		it.frames = []frame{textFrame(v.text)}
		return it, nil
	}
	f, err := fieldsOf(v)
	if err != nil {
		return it, errors.New("want a string or an object")
	}
	switch {
	case f.has("wait"):
		it.wait = f.num("wait", 1, 1000)
	case f.has("capture"):
		it.capture, it.method = f.str("capture"), f.str("method")
		if it.capture == "" || it.method == "" {
			f.fail("capture", errors.New("want a name, and a method"))
		}
	default:
		it.frames = f.frames()
	}
	return it, f.done()
}

// frames takes the members of an item that sends something.
func (f *fields) frames() []frame {
	control := func(op opcode, payload []byte) []frame {
		return []frame{{fin: true, op: op, payload: payload}}
	}
	switch {
	// Bytes that no JSON string can hold, such as broken UTF-8.
	case f.has("b64"):
		fr := frame{fin: true, op: opText, payload: f.bytes("b64")}
		if f.flag("binary") {
			fr.op = opBinary
		}
		return []frame{fr}
	case f.has("fragments"):
		var parts [][]byte
		for _, s := range f.strs("fragments") {
			parts = append(parts, []byte(s))
		}
		return fragments(parts, f.flag("ping_between"), f.flag("empty_tail"))
	// Frames may cut a character in two; texts could not say that.
	case f.has("fragments_b64"):
		var parts [][]byte
		for i, s := range f.strs("fragments_b64") {
			b, err := base64.StdEncoding.DecodeString(s)
			f.fail(fmt.Sprintf("fragments_b64[%d]", i), err)
			parts = append(parts, b)
		}
		return fragments(parts, f.flag("ping_between"), f.flag("empty_tail"))
	case f.has("interleave_data_frame"):
		two := f.strs("interleave_data_frame")
		if len(two) != 2 {
			f.fail("interleave_data_frame", errors.New("want two texts"))
			return nil
		}
		// The first message never ends; the second frame has an opcode of its own,
		// which is what RFC 6455 section 5.4 forbids.
		open := textFrame(two[0])
		open.fin = false
		return []frame{open, textFrame(two[1])}
	case f.has("unmasked"):
		fr := textFrame(f.str("unmasked"))
		fr.unmasked = true
		return []frame{fr}
	case f.has("rsv"):
		fr := textFrame(f.str("text"))
		if n := f.num("rsv", 1, 3); f.err == nil {
			// RSV1 is the bit beside FIN.
			fr.rsv = 0x80 >> n
		}
		return []frame{fr}
	case f.has("ping"):
		return control(opPing, []byte(f.str("ping")))
	case f.has("pong"):
		return control(opPong, []byte(f.str("pong")))
	case f.has("close"):
		code := f.num("close", 0, 0xFFFF)
		return control(opClose, append(binary.BigEndian.AppendUint16(nil, uint16(code)), f.str("reason")...))
	// A body as it comes, also one that is too short for a code.
	case f.has("close_raw_b64"):
		return control(opClose, f.bytes("close_raw_b64"))
	}
	f.fail("item", errors.New("says neither what to send nor what to wait for"))
	return nil
}

// fragments cuts one text message into frames (RFC 6455 section 5.4): the
// first has the opcode, the last has FIN, and control frames may come between.
func fragments(parts [][]byte, ping, tail bool) []frame {
	if tail {
		parts = append(parts, nil)
	}
	var out []frame
	for i, p := range parts {
		fr := frame{op: opContinuation, payload: p, fin: i == len(parts)-1}
		if i == 0 {
			fr.op = opText
		} else if ping {
			out = append(out, frame{fin: true, op: opPing, payload: []byte("between")})
		}
		out = append(out, fr)
	}
	return out
}

package wsconn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/duetrpc/duet/wsconn"
)

// How a stream of frames ends, for who decodes it.
type streamEnd int

const (
	endCut   streamEnd = iota // the stream ends, perhaps inside a frame
	endClose                  // a close frame
	endFault                  // what no end may send (RFC 6455 section 5)
	endOver                   // a message over the limit, perhaps cut short as well
)

// decodeFrames is a slow and plain decoder of what a dialed end sends, where no message may have more than limit
// bytes.
func decodeFrames(b []byte, limit uint64) (msgs [][]byte, code int, end streamEnd) {
	var open []byte // of the message that has begun, not nil
	for {
		if len(b) < 2 {
			return msgs, 0, endCut
		}
		first, second, length := b[0], b[1], uint64(b[1]&0x7F)
		b = b[2:]
		if size := map[uint64]int{126: 2, 127: 8}[length]; size > 0 {
			if len(b) < size {
				return msgs, 0, endCut
			}
			length = binary.BigEndian.Uint64(append(make([]byte, 8-size), b[:size]...))
			b = b[size:]
		}
		// A length beyond all sense is seen before the key has come, and in a frame of this package's after it.
		if length>>63 == 1 {
			return msgs, 0, endOver
		}
		var key []byte
		if second&0x80 != 0 {
			if len(b) < 4 {
				return msgs, 0, endCut
			}
			key, b = b[:4], b[4:]
		}
		opcode, fin := first&0x0F, first&0x80 != 0
		control := opcode >= 8
		switch {
		case key == nil, first&0x70 != 0, opcode > 10, !control && opcode > 2,
			control && (!fin || length > 125), opcode == 0 && open == nil, (opcode == 1 || opcode == 2) && open != nil:
			return msgs, 0, endFault
		case !control && length+uint64(len(open)) > limit:
			return msgs, 0, endOver
		case uint64(len(b)) < length:
			return msgs, 0, endCut
		}
		payload := bytes.Clone(b[:length])
		b = b[length:]
		for i := range payload {
			payload[i] ^= key[i%4]
		}
		switch {
		case opcode == 8 && length == 0:
			return msgs, 1005, endClose
		case opcode == 8 && length == 1:
			return msgs, 0, endFault
		case opcode == 8:
			code = int(binary.BigEndian.Uint16(payload))
			known := code >= 3000 && code <= 4999 || code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006
			if !known {
				return msgs, 0, endFault
			}
			return msgs, code, endClose
		case control:
			continue
		}
		open = append(append(make([]byte, 0, len(open)+len(payload)+1), open...), payload...)
		if fin {
			msgs, open = append(msgs, open), nil
		}
	}
}

// Whatever comes, an accepted end reads the messages that are in it, says what was wrong, and is done when the
// stream is.
func FuzzFrames(f *testing.F) {
	masked := func(fs ...frame) (b []byte) {
		for i, f := range fs {
			b = appendFrame(b, f, []int{-1, 8, -1}[i%3], fixedKeys())
		}
		return b
	}
	hundred := bytes.Repeat([]byte("abcdefghij"), 20)
	for _, seed := range [][]byte{
		nil,
		masked(frame{text, []byte("one")}, frame{binMsg, nil}, frame{text, hundred}, frame{closes, closePayload(1000, "bye")}),
		masked(frame{textBegins, []byte("a")}, frame{pings, []byte("p")}, frame{continues, nil}, frame{pongs, nil}, frame{ends, hundred}),
		masked(frame{text, make([]byte, 1000)}, frame{text, make([]byte, 1001)}),
		masked(frame{textBegins, make([]byte, 600)}, frame{ends, make([]byte, 600)}),
		masked(frame{textBegins, []byte("a")}, frame{text, []byte("b")}),
		masked(frame{closes, nil}, frame{text, []byte("after")}),
		masked(frame{closes, []byte{3}}),
		masked(frame{closes, closePayload(1006, "")}),
		masked(frame{0xC1, []byte("rsv")}),
		masked(frame{0x83, nil}),
		masked(frame{pings, make([]byte, 125)}, frame{text, hundred})[:200],
		frame{text, []byte("plain")}.bytes(false),
		{text, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		endlessFrame,
		{text, 0xFF, 0, 0, 0, 0, 0, 0x40, 0, 0, 1, 2, 3, 4, 5},
	} {
		f.Add(seed, uint16(len(seed)/2))
	}
	f.Fuzz(func(t *testing.T, sent []byte, cut uint16) {
		synctest.Test(t, func(t *testing.T) { checkFrames(t, sent, min(int(cut), len(sent))) })
	})
}

// endlessFrame is the header of one that has 2^63-1 bytes, the most that a header can say.
var endlessFrame = []byte{text, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}

// A header and the longest payload were once added up to less than nothing, and reading that panicked.
func TestEndlessFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { checkFrames(t, endlessFrame, len(endlessFrame)) })
	synctest.Test(t, func(t *testing.T) { // inside a message, where the library looks at it first
		checkFrames(t, append(appendFrame(nil, frame{textBegins, []byte("a")}, -1, fixedKeys()), append([]byte{ends}, endlessFrame[1:]...)...), 0)
	})
}

// checkFrames has an accepted end read what is sent in two pieces.
func checkFrames(t *testing.T, sent []byte, cut int) {
	const limit = 1000
	want, code, how := decodeFrames(sent, limit)
	c, raw := acceptRaw(t, &wsconn.Options{ReadLimit: limit, PingInterval: -1, WriteTimeout: -1})
	var got [][]byte
	end := make(chan error, 1)
	go func() {
		for {
			msg, err := c.Read(context.Background(), nil)
			if err != nil {
				end <- err
				return
			}
			got = append(got, msg)
		}
	}()
	go func() { // the answers
		for {
			if f, err := readFrame(raw); err != nil || f.first == closes {
				io.Copy(io.Discard, raw)
				return
			}
		}
	}()
	go func() {
		raw.Write(sent[:cut])
		raw.Write(sent[cut:])
	}()
	synctest.Wait() // until nothing moves any more
	start := time.Now()
	raw.Close()
	err := <-end
	<-c.Done()
	if took := time.Since(start); took != 0 {
		t.Errorf("end of the stream took %v, want it at once", took)
	}
	if len(got) != len(want) {
		t.Fatalf("Read = %d messages %.80q, then %v, want %d %.80q", len(got), got, err, len(want), want)
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("Read of message %d = %.80q, want %.80q", i, got[i], want[i])
		}
	}
	var cause *wsconn.CloseError
	if !errors.As(err, &cause) || !utf8.ValidString(cause.Reason) {
		t.Fatalf("Read = %v, want a *CloseError with a valid reason", err)
	}
	fits := map[streamEnd]bool{
		endCut:   cause.Code == 1006 && !cause.Local,
		endClose: cause.Code == code && !cause.Local,
		endFault: cause.Code == 1002 && cause.Local,
		endOver:  cause.Local || cause.Code == 1006,
	}
	if !fits[how] {
		t.Errorf("Read = %v (%+v), want the end of kind %d with code %d", err, cause, how, code)
	}
}

package wsconn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/wsconn"
)

// A stream is many frames as they stand on the wire, and what they mean.
type stream struct {
	bytes  []byte
	starts []int    // of the frames in bytes
	msgs   [][]byte // closed with 1001 after them
}

// newStream makes a stream of everything that may come between a handshake and a close frame. With this seed it is
// the same each time.
func newStream(masked bool) *stream {
	rng, s := rand.New(rand.NewPCG(1, 2)), &stream{}
	keys := rng
	if !masked {
		keys = nil
	}
	put := func(first byte, field int, payload []byte) {
		s.starts = append(s.starts, len(s.bytes))
		s.bytes = appendFrame(s.bytes, frame{first, payload}, field, keys)
	}
	message := func(first byte, field, n int) {
		s.msgs = append(s.msgs, randomBytes(rng, n))
		put(first, field, s.msgs[len(s.msgs)-1])
	}
	// parts is a message in fragments of these sizes, with control frames between them (RFC 6455 section 5.4).
	parts := func(first byte, sizes ...int) {
		var whole []byte
		for i, n := range sizes {
			part := randomBytes(rng, n)
			whole = append(whole, part...)
			switch {
			case i == 0:
				put(first, -1, part)
			case i < len(sizes)-1:
				put(continues, -1, part)
			default:
				put(ends, -1, part)
			}
			if i < len(sizes)-1 {
				put(pings, -1, part[:min(n, 125)])
				put(pongs, -1, nil)
			}
		}
		s.msgs = append(s.msgs, whole)
	}
	for _, n := range []int{0, 1, 125, 126, 127, 1000, 65535, 65536, 300 << 10, 3, 0} {
		message(text, -1, n)
		message(binMsg, -1, n)
	}
	put(pings, -1, []byte("between messages"))
	message(text, -1, 10)
	message(text, -1, 20)
	parts(textBegins, 1, 0, 2)
	parts(binBegins, 0, 0)
	message(text, -1, 0)
	parts(textBegins, 126, 70_000, 5)
	// The length must take no more bytes than it needs (RFC 6455 section 5.2). Others take it as it is, and so does
	// this package.
	for _, n := range []int{0, 5, 125} {
		message(text, 2, n)
		message(binMsg, 8, n)
	}
	message(text, 8, 126)
	message(text, 8, 65535)
	for range 200 {
		message(text, -1, rng.IntN(300))
	}
	put(closes, -1, closePayload(1001, "bye"))
	return s
}

// deliveries are the ways in which a stream may come.
var deliveries = []struct {
	name string
	send func(w io.Writer, s *stream)
}{
	{"whole", func(w io.Writer, s *stream) { w.Write(s.bytes) }},
	{"byte by byte", func(w io.Writer, s *stream) {
		for i, start := range s.starts {
			f := s.bytes[start:]
			if i+1 < len(s.starts) {
				f = s.bytes[start:s.starts[i+1]]
			}
			for len(f) > 0 {
				n := 1
				if long := len(f) - 20; long > 1000 { // only the beginnings and ends of the long ones
					f = writeEach(w, f[:60], f[60:])
					n = len(f) - 20
				}
				w.Write(f[:n])
				f = f[n:]
			}
		}
	}},
	{"split small", func(w io.Writer, s *stream) { writeSplit(w, s, 2000) }},
	{"split large", func(w io.Writer, s *stream) { writeSplit(w, s, 200_000) }},
	{"frame by frame", func(w io.Writer, s *stream) {
		for i := 1; i < len(s.starts); i++ {
			w.Write(s.bytes[s.starts[i-1]:s.starts[i]])
		}
		w.Write(s.bytes[s.starts[len(s.starts)-1]:])
	}},
	{"headers alone", func(w io.Writer, s *stream) { // a frame's beginning comes with the frame before it
		at := 0
		for i, start := range s.starts {
			w.Write(s.bytes[at : start+1+i%2])
			at = start + 1 + i%2
		}
		w.Write(s.bytes[at:])
	}},
}

func writeEach(w io.Writer, p, rest []byte) []byte {
	for i := range p {
		w.Write(p[i : i+1])
	}
	return rest
}

func writeSplit(w io.Writer, s *stream, most int) {
	rng := rand.New(rand.NewPCG(3, uint64(most)))
	for rest := s.bytes; len(rest) > 0; {
		n := min(len(rest), 1+rng.IntN(most))
		w.Write(rest[:n])
		rest = rest[n:]
	}
}

// check reads c to its end and holds what comes against s.
func (s *stream) check(t *testing.T, c *wsconn.Conn) {
	t.Helper()
	for i, want := range s.msgs {
		buf := make([]byte, i%3, i%3+i%7*100) // sometimes with room, sometimes with something in it
		got, err := c.Read(context.Background(), buf)
		if err != nil || !bytes.Equal(got[i%3:], want) {
			t.Fatalf("Read of message %d = %d bytes, %v, want the %d bytes that were sent", i, len(got)-i%3, err, len(want))
		}
	}
	var end *wsconn.CloseError
	if _, err := c.Read(context.Background(), nil); !errors.As(err, &end) || end.Code != 1001 || end.Reason != "bye" {
		t.Errorf("Read at the end = %v, want close 1001", err)
	}
	<-c.Done()
}

// However a stream is cut on its way, the messages read are those sent.
func TestReadHoweverItComes(t *testing.T) {
	opts := &wsconn.Options{PingInterval: -1}
	for _, client := range []bool{false, true} {
		s, name := newStream(!client), map[bool]string{false: "accepted ", true: "dialed "}[client]
		for _, delivery := range deliveries {
			t.Run(name+"over a pipe "+delivery.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *wsconn.Conn
					var raw net.Conn
					var err error
					if client {
						c, raw, err = dialRaw(t, opts)
					} else {
						c, raw = acceptRaw(t, opts)
					}
					if err != nil {
						t.Fatalf("Dial = %v", err)
					}
					defer raw.Close()
					go io.Copy(io.Discard, raw)
					go delivery.send(raw, s)
					s.check(t, c)
				})
			})
			t.Run(name+"over TCP "+delivery.name, func(t *testing.T) {
				var c *wsconn.Conn
				var raw net.Conn
				if client {
					c, raw = dialSocketRaw(t, opts, nil)
				} else {
					raw, _, c = rawSocket(t, opts)
				}
				defer raw.Close()
				go io.Copy(io.Discard, raw)
				go delivery.send(raw, s)
				s.check(t, c)
			})
		}
		t.Run(name+"with the handshake", func(t *testing.T) {
			var c *wsconn.Conn
			var raw net.Conn
			if client {
				c, raw = dialSocketRaw(t, opts, s.bytes)
			} else {
				server, conns := listen(t, opts)
				raw, _ = upgradeRaw(t, server, s.bytes)
				c = <-conns
			}
			go io.Copy(io.Discard, raw)
			s.check(t, c)
			raw.Close()
		})
	}
}

// A dialing end must fail the connection when a frame is masked, an accepting one when it is not
// (RFC 6455 section 5.1).
func TestMaskingFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		before []frame // as they must be
		wrong  frame
	}{
		{"text", nil, frame{text, []byte("x")}},
		{"empty text", nil, frame{text, nil}},
		{"binary", nil, frame{binMsg, []byte("x")}},
		{"beginning of a message", nil, frame{textBegins, []byte("x")}},
		{"ping", nil, frame{pings, []byte("x")}},
		{"close", nil, frame{closes, closePayload(1000, "")}},
		{"text after a text", []frame{{text, []byte("x")}}, frame{text, []byte("y")}},
		{"text after a ping", []frame{{pings, nil}}, frame{text, []byte("y")}},
		{"close after a ping", []frame{{pings, nil}}, frame{closes, closePayload(1000, "")}},
		{"end of a message", []frame{{textBegins, []byte("x")}}, frame{ends, []byte("y")}},
		{"ping inside a message", []frame{{textBegins, []byte("x")}}, frame{pings, []byte("y")}},
	} {
		for _, client := range []bool{false, true} {
			t.Run(map[bool]string{false: "accepted ", true: "dialed "}[client]+test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *wsconn.Conn
					var raw net.Conn
					if client {
						c, raw, _ = dialRaw(t, nil)
					} else {
						c, raw = acceptRaw(t, nil)
					}
					defer func() { raw.Close(); c.Close(nil); <-c.Done() }()
					end := readAll(c)
					go func() {
						for _, f := range test.before {
							raw.Write(f.bytes(!client))
						}
						raw.Write(test.wrong.bytes(client))
						if test.wrong.first == textBegins || test.wrong.first == pings { // a message that an end which does not look would take
							raw.Write(frame{ends, nil}.bytes(!client))
						}
					}()
					f, err := readFrame(raw)
					for err == nil && f.first == pongs {
						f, err = readFrame(raw)
					}
					if err != nil || f.first != closes || len(f.payload) < 2 || binary.BigEndian.Uint16(f.payload) != 1002 {
						t.Errorf("answer = %x %q, %v, want close 1002", f.first, f.payload, err)
					}
					raw.Close()
					if err := <-end; !errors.Is(err, wsconn.ErrProtocol) {
						t.Errorf("Read = %v, want ErrProtocol", err)
					}
				})
			})
		}
	}
}

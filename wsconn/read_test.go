package wsconn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

func TestReadAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, nil, nil)
		defer func() { a.Close(nil); <-a.Done(); <-b.Done() }()
		msgs := []string{"", "x", strings.Repeat("y", 511), strings.Repeat("z", 512), strings.Repeat("w", 100_000)}
		go func() {
			for _, msg := range msgs {
				a.Write(t.Context(), []byte(msg))
			}
			readAll(a)
		}()
		for _, want := range msgs {
			got, err := b.Read(t.Context(), []byte("head "))
			if err != nil || string(got) != "head "+want {
				t.Errorf("Read = %d bytes, %v, want %d", len(got), err, 5+len(want))
			}
		}
		readAll(b)
	})
}

func TestReadLimit(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
		fits bool
	}{{"at the limit", 1000, true}, {"one over", 1001, false}, {"far over", 1 << 20, false}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				limited := &wsconn.Options{ReadLimit: 1000, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				a, b := pair(t, nil, limited)
				far := readAll(a)
				go a.Write(context.Background(), bytes.Repeat([]byte("s"), test.size))
				msg, err := b.Read(t.Context(), nil)
				if test.fits {
					if err != nil || len(msg) != test.size {
						t.Errorf("Read = %d bytes, %v, want %d", len(msg), err, test.size)
					}
					readAll(b)
					b.Close(nil)
				} else {
					if !errors.Is(err, wsconn.ErrMessageTooBig) {
						t.Errorf("Read = %v, want ErrMessageTooBig", err)
					}
					if err := <-far; !errors.Is(err, wsconn.ErrMessageTooBig) {
						t.Errorf("Read at the sending end = %v, want ErrMessageTooBig", err)
					}
					if err := a.Write(t.Context(), nil); !errors.Is(err, wsconn.ErrMessageTooBig) {
						t.Errorf("Write at the sending end = %v, want ErrMessageTooBig", err)
					}
					<-b.Done()
					if s := log.String(); !strings.Contains(s, "limit=1000") || strings.Contains(s, "sss") {
						t.Errorf("log = %q, want the limit and no content", s)
					}
				}
				<-a.Done()
				<-b.Done()
			})
		})
	}
}

func TestReadBinary(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, raw := acceptRaw(t, &wsconn.Options{RefuseBinary: refuse})
			go raw.Write(frame{binMsg, []byte("{}")}.bytes(true))
			msg, err := c.Read(t.Context(), nil)
			if !refuse {
				if err != nil || string(msg) != "{}" {
					t.Errorf("Read = %q, %v, want {}", msg, err)
				}
				c.Close(nil)
			} else if !errors.Is(err, wsconn.ErrUnsupportedData) {
				t.Errorf("Read = %v, want ErrUnsupportedData", err)
			}
			want := map[bool]int{false: 1000, true: 1003}[refuse]
			if f, err := readFrame(raw); err != nil || f.first != closes || int(binary.BigEndian.Uint16(f.payload)) != want {
				t.Errorf("frame sent = %x %q, %v, want close %d", f.first, f.payload, err, want)
			}
			raw.Close()
			<-c.Done()
		})
	}
}

// What a broken end may send, and that it is told so before the stream ends.
func TestProtocolFaults(t *testing.T) {
	fin := func(f frame) []byte { return f.bytes(true) }
	for _, test := range []struct {
		name string
		sent []byte
	}{
		{"unmasked text", frame{text, []byte("plain")}.bytes(false)},
		{"unmasked close", frame{closes, closePayload(1000, "")}.bytes(false)},
		{"reserved bit 1", fin(frame{0xC1, []byte("x")})},
		{"reserved bit 3", fin(frame{0x91, []byte("x")})},
		{"reserved opcode", fin(frame{0x83, []byte("x")})},
		{"continuation of nothing", fin(frame{0x80, []byte("x")})},
		{"text inside a message", append(fin(frame{0x01, []byte("x")}), fin(frame{text, []byte("y")})...)},
		{"long ping", fin(frame{pings, make([]byte, 126)})},
		{"fragmented ping", fin(frame{0x09, nil})},
		{"negative length", []byte{text, 0x80 | 127, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, raw := acceptRaw(t, nil)
				end := readAll(c)
				go raw.Write(test.sent)
				f, err := readFrame(raw)
				if err != nil || f.first != closes || len(f.payload) < 2 || binary.BigEndian.Uint16(f.payload) != 1002 {
					t.Errorf("answer = %x %q, %v, want close 1002", f.first, f.payload, err)
				}
				if err := <-end; !errors.Is(err, wsconn.ErrProtocol) || errors.Is(err, io.EOF) {
					t.Errorf("Read = %v, want ErrProtocol", err)
				}
				raw.Close()
				<-c.Done()
			})
		})
	}
}

// A stream that ends without a close frame is no orderly end, wherever it ends. Inside a message it used to pass
// for the message's end: the library takes an io.EOF from below for its own.
func TestStreamEnds(t *testing.T) {
	whole := frame{text, bytes.Repeat([]byte("x"), 100)}.bytes(true)
	part := frame{0x01, []byte("x")}.bytes(true)
	for _, test := range []struct {
		name string
		sent []byte
	}{
		{"between messages", nil}, {"in a header", whole[:1]}, {"after a header", whole[:6]},
		{"in a payload", whole[:50]}, {"between fragments", part},
	} {
		for _, compression := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, raw := acceptRaw(t, &wsconn.Options{Compression: compression})
					go func() { raw.Write(test.sent); raw.Close() }()
					msg, err := c.Read(t.Context(), nil)
					var got *wsconn.CloseError
					if !errors.As(err, &got) || got.Code != 1006 || got.Local || errors.Is(err, io.EOF) ||
						!errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, wsconn.ErrAbnormal) {
						t.Errorf("Read = %q, %v, want code 1006 with io.ErrUnexpectedEOF", msg, err)
					}
					<-c.Done()
				})
			})
		}
	}
}

// A compressed message cut short by the stream's end, as sent by a dialed end of our own.
func TestStreamEndsInCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &wsconn.Options{Compression: true}
		a, raw, err := dialRaw(t, on, "Sec-WebSocket-Extensions", "permessage-deflate; client_no_context_takeover; server_no_context_takeover")
		if err != nil {
			t.Fatalf("Dial = %v", err)
		}
		go a.Write(context.Background(), bytes.Repeat([]byte("0123456789abcdef"), 100))
		f, err := readFrame(raw)
		if err != nil || f.first != 0xC1 {
			t.Fatalf("frame sent = %x, %v, want a compressed one", f.first, err)
		}
		bytesOf := frame{0xC1, f.payload}.bytes(false)
		go func() { raw.Write(bytesOf[:len(bytesOf)-8]); raw.Close() }()
		if msg, err := a.Read(t.Context(), nil); !errors.Is(err, wsconn.ErrAbnormal) {
			t.Errorf("Read = %d bytes, %v, want ErrAbnormal", len(msg), err)
		}
		<-a.Done()
	})
}

func TestControlFrameNeverCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, nil)
		go raw.Write(frame{pings, []byte("abcd")}.bytes(true)[:7])
		start := time.Now()
		_, err := c.Read(t.Context(), nil)
		if !errors.Is(err, wsconn.ErrAbnormal) || errors.Is(err, net.ErrClosed) || time.Since(start) != 5*time.Second {
			t.Errorf("Read = %v after %v, want ErrAbnormal after 5s", err, time.Since(start))
		}
		<-c.Done()
		raw.Close()
	})
}

func TestCompression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &wsconn.Options{Compression: true, ReadLimit: 1 << 16}
		a, b := pair(t, on, on)
		end := readAll(a)
		want := bytes.Repeat([]byte("ab"), 1<<15)
		go func() {
			a.Write(context.Background(), want)
			a.Write(context.Background(), append(want, 'c'))
		}()
		if got, err := b.Read(t.Context(), make([]byte, 0, 10)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("Read = %d bytes, %v, want %d", len(got), err, len(want))
		}
		// The limit counts what the message inflates to.
		if _, err := b.Read(t.Context(), nil); !errors.Is(err, wsconn.ErrMessageTooBig) {
			t.Errorf("Read = %v, want ErrMessageTooBig", err)
		}
		if err := <-end; !errors.Is(err, wsconn.ErrMessageTooBig) {
			t.Errorf("Read at the sending end = %v, want ErrMessageTooBig", err)
		}
		<-a.Done()
		<-b.Done()
	})
}

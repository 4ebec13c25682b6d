package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// through a proxy with one script: the client's end and the server's.
type ends struct {
	client, server *net.TCPConn
	cuts           chan kind
}

// connect makes a connection through a proxy that has s happen to it.
func connect(t *testing.T, s script) ends {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := ends{cuts: make(chan kind, 2)}
	p, err := newProxy(l.Addr().String(), func(int) script { return s }, func(k kind) { e.cuts <- k })
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	e.client, e.server = client.(*net.TCPConn), server.(*net.TCPConn)
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		p.close()
	})
	for _, c := range []net.Conn{client, server} {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	}
	return e
}

// text is what is sent: none of its parts looks like another.
func text(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)
	}
	return b
}

// The cuts with an orderly end let the other end have every byte before, and none after.
func TestCutsAtTheByte(t *testing.T) {
	sent := text(40_000)
	for _, k := range []kind{truncate, halfClose, limitData} {
		for _, after := range []int64{0, 1, 2, 125, 8191, 8192, 8193, 30_001} {
			for _, up := range []bool{true, false} {
				f := fault{Kind: k, Up: up, After: after}
				want := after
				if k == limitData {
					f.Param, want = 3, after+3
				}
				e := connect(t, script{Cut: f})
				from, to := e.client, e.server
				if !up {
					from, to = to, from
				}
				go func() { _, _ = from.Write(sent) }()
				got, err := io.ReadAll(to)
				if err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%v: %v", f, err)
				}
				if !bytes.Equal(got, sent[:want]) {
					t.Errorf("%v: %d bytes passed, want %d", f, len(got), want)
				}
				if cut := <-e.cuts; cut != k {
					t.Errorf("%v: %s was counted", f, cut)
				}
			}
		}
	}
}

// A half-close leaves the other direction as it is.
func TestHalfClose(t *testing.T) {
	e := connect(t, script{Cut: fault{Kind: halfClose, Up: true, After: 10}})
	_, _ = e.client.Write(text(20))
	if got, err := io.ReadAll(e.server); len(got) != 10 || err != nil {
		t.Errorf("%d bytes, %v; want 10 and the end", len(got), err)
	}
	_, _ = e.server.Write(text(30))
	_ = e.server.Close()
	if got, err := io.ReadAll(e.client); len(got) != 30 || err != nil {
		t.Errorf("%d bytes, %v; want 30 the other way", len(got), err)
	}
}

func TestReset(t *testing.T) {
	for _, k := range []kind{reset, resetPeer} {
		e := connect(t, script{Cut: fault{Kind: k, Up: true, After: 10, Param: 1}})
		_, _ = e.client.Write(text(20))
		for _, c := range []net.Conn{e.client, e.server} {
			if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: %v, want a reset", k, err)
			}
		}
	}
}

// Blackholes pass what came before, and then neither bytes nor ends.
func TestBlackholes(t *testing.T) {
	for _, test := range []struct {
		kind kind
		back int // bytes that pass the other way
	}{{blackhole, 0}, {oneWay, 5}} {
		e := connect(t, script{Cut: fault{Kind: test.kind, Up: true, After: 10}})
		_, _ = e.client.Write(text(20))
		<-e.cuts
		_, _ = e.server.Write(text(5))
		_ = e.client.CloseWrite()
		for c, want := range map[*net.TCPConn]int{e.server: 10, e.client: test.back} {
			_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			got, err := io.ReadAll(c)
			if len(got) != want || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %d bytes, %v; want %d and silence", test.kind, len(got), err, want)
			}
		}
	}
}

// Shapes change no byte, and leave nothing behind where an end goes early.
func TestShapes(t *testing.T) {
	sent := text(40_000)
	for _, f := range []fault{
		{Kind: latency, Param: 5}, {Kind: bandwidth, Param: 1000}, {Kind: slicer, Param: 100}, {Kind: slowClose, Param: 20},
	} {
		e := connect(t, script{Shapes: []fault{f}})
		go func() {
			_, _ = e.server.Write(sent)
			_ = e.server.Close()
		}()
		if got, err := io.ReadAll(e.client); !bytes.Equal(got, sent) || err != nil {
			t.Errorf("%v: %d bytes, %v", f, len(got), err)
		}
	}
}

// What nothing happens to is not counted.
func TestNoCut(t *testing.T) {
	e := connect(t, script{Cut: fault{Kind: reset, Up: true, After: 100}})
	_, _ = e.client.Write(text(50))
	_ = e.client.Close()
	if got, err := io.ReadAll(e.server); len(got) != 50 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	select {
	case k := <-e.cuts:
		t.Errorf("%s was counted", k)
	default:
	}
}

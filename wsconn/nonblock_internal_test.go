//go:build unix

package wsconn

import (
	"errors"
	"io"
	"net"
	"testing"
)

// A read that waits holds no buffer, and the bytes go into one that was asked for when they had come.
func TestNonblockWaitsWithoutBuffer(t *testing.T) {
	near, far := tcpPair(t)
	held, waits := 0, make(chan int, 1) // how many are held once it has been found that there is nothing
	buf := make([]byte, 10)
	n := newNonblock(near, func() []byte { held++; return buf }, func() { held--; waits <- held })
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	read := func() { n, err := n.read(); done <- result{n, err} }
	go read()
	if got := <-waits; got != 0 {
		t.Errorf("a waiting read holds %d buffers, want 0", got)
	}
	far.Write([]byte("hello"))
	if got := <-done; got.n != 5 || got.err != nil || held != 1 || string(buf[:5]) != "hello" {
		t.Errorf("read = %d, %v with %d buffers and %q, want 5 bytes in one", got.n, got.err, held, buf)
	}
	held = 0
	go read()
	<-waits
	far.Close()
	if got := <-done; got.n != 0 || got.err != io.EOF {
		t.Errorf("read at the end = %d, %v, want io.EOF", got.n, got.err)
	}
	near.Close()
	if got, err := n.read(); got != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of a closed connection = %d, %v, want net.ErrClosed", got, err)
	}
}

// A write takes what the system takes, says how much, and does not wait.
func TestNonblockWrite(t *testing.T) {
	near, far := tcpPair(t)
	n := newNonblock(near, nil, nil)
	p, sent := make([]byte, 1<<20), 0
	for {
		got, err := n.write(p)
		if err != nil {
			t.Fatalf("write = %d, %v, want no error", got, err)
		}
		if sent += got; got < len(p) {
			break
		}
	}
	if got, err := n.write(p); got == len(p) || err != nil {
		t.Errorf("write to a full connection = %d, %v, want less and no error", got, err)
	}
	if got, err := io.CopyN(io.Discard, far, int64(sent)); err != nil {
		t.Errorf("%d bytes arrived, %v, want the %d that were taken", got, err, sent)
	}
	near.Close()
	if got, err := n.write(p); got != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("write to a closed connection = %d, %v, want net.ErrClosed", got, err)
	}
}

// Whatever wraps a TCP connection wants to see the bytes.
func TestNonblockOnlyBareTCP(t *testing.T) {
	near, _ := tcpPair(t)
	if newNonblock(near, nil, nil) == nil {
		t.Error("newNonblock of a TCP connection = nil")
	}
	pipe, _ := net.Pipe()
	for _, conn := range []net.Conn{nil, pipe, struct{ *net.TCPConn }{near.(*net.TCPConn)}} {
		if newNonblock(conn, nil, nil) != nil {
			t.Errorf("newNonblock of a %T is not nil", conn)
		}
	}
}

func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// TryWrite needs the turn and the frames both, and writes nothing once a close frame is out.
func TestTryWriteKeepsOut(t *testing.T) {
	near, far := tcpPair(t)
	c := newConn((*Options)(nil).withDefaults(), false)
	c.sock = newSocket(near, near, nil, 0)
	refuses := func(why string) {
		t.Helper()
		if took, flushed := c.TryWrite([]byte("x")); took || flushed {
			t.Errorf("TryWrite %s = %v, %v, want false, false", why, took, flushed)
		}
	}
	c.turn.lock()
	refuses("out of turn")
	if c.turn.try() {
		t.Error("TryWrite gave another's turn away")
	}
	c.turn.unlock()
	c.sock.frames.lock()
	refuses("inside a frame")
	c.sock.said = true
	c.sock.frames.unlock()
	refuses("behind a close frame")
	if !c.turn.try() || !c.sock.frames.try() {
		t.Error("TryWrite keeps what it locked")
	}
	near.Close()
	if sent, _ := io.ReadAll(far); len(sent) > 0 {
		t.Errorf("sent = %x, want nothing", sent)
	}
}

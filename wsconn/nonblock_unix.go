//go:build unix

package wsconn

import (
	"io"
	"net"
	"os"
	"syscall"
)

// A nonblock reaches below a *net.TCPConn for what a net.Conn cannot: to write only as much as the system takes at
// once, and to hold no buffer while there is nothing to read. One read and one write at a time.
type nonblock struct {
	raw syscall.RawConn

	// The functions that run with the descriptor are made once, and so get what they work on from here.
	readFrom, writeTo func(fd uintptr) bool
	buffer            func() []byte // called when there is something to read
	release           func()        // called where there was nothing after all
	in                int
	inErr             error
	out               []byte
	wrote             int
	outErr            error
}

// newNonblock returns nil where conn is no bare TCP connection: whatever wraps one wants to see the bytes.
func newNonblock(conn net.Conn, buffer func() []byte, release func()) *nonblock {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	n := &nonblock{raw: raw, buffer: buffer, release: release}
	n.readFrom = func(fd uintptr) bool {
		b := n.buffer()
		n.in, n.inErr = again(func() (int, error) { return syscall.Read(int(fd), b) })
		if n.inErr == syscall.EAGAIN {
			n.release()
			return false
		}
		return true
	}
	n.writeTo = func(fd uintptr) bool {
		n.wrote, n.outErr = again(func() (int, error) { return syscall.Write(int(fd), n.out) })
		return true
	}
	return n
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// read waits until there is something to read, and only then asks for a buffer to read it into.
func (n *nonblock) read() (int, error) {
	if err := n.raw.Read(n.readFrom); err != nil {
		return 0, err
	}
	switch {
	case n.inErr != nil:
		return 0, os.NewSyscallError("read", n.inErr)
	case n.in == 0:
		return 0, io.EOF
	}
	return n.in, nil
}

// write writes what the system takes at once. Less than all of p is no error.
func (n *nonblock) write(p []byte) (int, error) {
	n.out = p
	err := n.raw.Write(n.writeTo)
	n.out = nil
	switch {
	case err != nil:
		return 0, err
	case n.outErr != nil && n.outErr != syscall.EAGAIN:
		return 0, os.NewSyscallError("write", n.outErr)
	}
	return n.wrote, nil
}

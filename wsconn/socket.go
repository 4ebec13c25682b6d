package wsconn

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// lingerBytes bounds what is read and thrown away after this end has closed.
const lingerBytes = 16 << 20

var (
	errEnded    = errors.New("wsconn: stream ended") // see socket.broken for why
	errLingered = errors.New("wsconn: too much sent after the close frame")
)

// A socket is the byte stream below the WebSocket. It stands between coder/websocket and the net.Conn to know
// what that library does not tell: which error the stream itself gave, and to close it without a reset.
//
// The library writes each of its control frames by one Write, as Conn does, and a net.Conn takes whole Writes one
// after the other; so a control frame can be written beside the library, between its data frames.
type socket struct {
	rwc    io.ReadWriteCloser
	budget atomic.Int64 // bytes that may yet be read, once closing
	muted  atomic.Bool  // the library is cut off: reads nothing, closes nothing
	err    atomic.Pointer[error]

	closeOnce sync.Once
	closed    atomic.Bool
}

// newSocket wraps rwc, which newSocket then owns: cut closes it.
func newSocket(rwc io.ReadWriteCloser) *socket {
	s := &socket{rwc: rwc}
	s.budget.Store(1<<63 - 1)
	return s
}

// Read is the library's. It never returns io.EOF nor io.ErrUnexpectedEOF: by these the library also knows the end
// of a message, and takes one cut short by the end of the stream for whole.
func (s *socket) Read(p []byte) (int, error) {
	if s.muted.Load() {
		return 0, errEnded
	}
	n, err := s.read(p)
	if err != nil {
		err = errEnded
	}
	return n, err
}

// read is Read below the mute and the io.EOF translation, and is what linger drains through.
func (s *socket) read(p []byte) (int, error) {
	n, err := s.rwc.Read(p)
	if s.budget.Add(int64(-n)) < 0 {
		err = errLingered
	}
	s.note(err)
	return n, err
}

// Write is the library's, and Conn's own for a control frame; both pass through the same bookkeeping.
func (s *socket) Write(p []byte) (int, error) {
	n, err := s.rwc.Write(p)
	s.note(err)
	return n, err
}

// Close is the library's; it ends the stream unless the library was muted.
func (s *socket) Close() error {
	if !s.muted.Load() {
		s.cut()
	}
	return nil
}

// cut ends the stream at once and with it every Read and Write on it.
func (s *socket) cut() {
	s.closeOnce.Do(func() {
		s.closed.Store(true)
		s.rwc.Close()
	})
}

// note keeps the first error of the stream itself. An end of the stream is never orderly below a WebSocket: io.EOF
// must not pass for a close frame.
func (s *socket) note(err error) {
	if err == nil {
		return
	}
	kept := err // a copy, so that only what is kept goes to the heap
	if kept == io.EOF {
		kept = io.ErrUnexpectedEOF
	}
	s.err.CompareAndSwap(nil, &kept)
}

// broken returns the first error of the stream, or nil while it works.
func (s *socket) broken() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// closing starts to count what is still read, from here to lingerBytes.
func (s *socket) closing() { s.budget.Store(lingerBytes) }

// linger reads to the other end's end of the stream. Closing a TCP socket with unread bytes in it sends a reset,
// which can destroy the close frame on its way.
func (s *socket) linger() {
	if half, ok := s.rwc.(interface{ CloseWrite() error }); ok && half.CloseWrite() != nil {
		return
	}
	buf := make([]byte, 4096)
	for {
		if _, err := s.read(buf); err != nil {
			return
		}
	}
}

// netSocket is a socket for who asks for a net.Conn.
type netSocket struct {
	net.Conn
	sock *socket
}

func (n netSocket) Read(p []byte) (int, error)  { return n.sock.Read(p) }
func (n netSocket) Write(p []byte) (int, error) { return n.sock.Write(p) }
func (n netSocket) Close() error                { return n.sock.Close() }

package wsconn

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lingerBytes bounds what is read and thrown away after this end has closed.
const lingerBytes = 16 << 20

var (
	errEnded    = errors.New("wsconn: stream ended") // see socket.broken for why
	errLingered = errors.New("wsconn: too much sent after the close frame")
	errSaid     = errors.New("wsconn: a close frame has been sent")
)

// A socket is the byte stream below the WebSocket, shared by this package, which moves the data frames, and
// coder/websocket, which does everything else: handshake, control frames, fragments, compression. It keeps the two
// apart by whole frames: see inflow for what is read; what is written is one owner's from the first byte of a frame
// to the last. It also knows what that library does not tell: which error the stream itself gave.
type socket struct {
	rwc io.ReadWriteCloser
	low *nonblock // below rwc, nil where it has nothing below
	in  inflow

	frames gate // shut while a frame is being written
	said   bool // a close frame is out, so nothing may follow; guarded by frames
	pieces bool // the library writes data frames too, in pieces

	budget atomic.Int64 // bytes that may yet be read, once closing
	muted  atomic.Bool  // the library is cut off: reads nothing, closes nothing
	err    atomic.Pointer[error]

	closeOnce sync.Once
	closed    atomic.Bool
}

// newSocket wraps rwc, which newSocket then owns: cut closes it. Where the bytes of rwc are those of conn, and
// nothing else looks at them, conn is not nil. What was read of the stream already is early; what else of it may
// wait above conn is ahead bytes at most.
func newSocket(rwc io.ReadWriteCloser, conn net.Conn, early []byte, ahead int) *socket {
	s := &socket{rwc: rwc, frames: newGate()}
	s.in.init(s, early, ahead)
	s.low = newNonblock(conn, s.in.room, s.in.giveBack)
	s.budget.Store(1<<63 - 1)
	return s
}

// use says where the buffers come from, which end this is, and what the library writes, before the first Read.
func (s *socket) use(buffers *Buffers, client, compression bool) {
	s.in.buffers, s.in.client, s.pieces = buffers, client, compression
}

// Read is the library's, which gets whole frames and never a byte behind the one it asked for. It never returns
// io.EOF nor io.ErrUnexpectedEOF: by these the library also knows the end of a message, and takes one cut short by
// the end of the stream for whole.
func (s *socket) Read(p []byte) (int, error) {
	if s.muted.Load() {
		return 0, errEnded
	}
	n, err := s.in.feed(p)
	if err != nil {
		err = errEnded
	}
	return n, err
}

// read is the stream as it comes, below everything that cuts it into frames.
func (s *socket) read(p []byte) (int, error) {
	n, err := s.rwc.Read(p)
	return n, s.count(n, err)
}

// count is the bookkeeping of every read.
func (s *socket) count(n int, err error) error {
	if s.budget.Add(int64(-n)) < 0 {
		err = errLingered
	}
	s.note(err)
	return err
}

// Write is the library's, and Conn's own for a control frame. The library writes each of its control frames by one
// Write. It waits for a frame that is on its way, as long as the library itself would wait for its lock.
func (s *socket) Write(p []byte) (int, error) {
	if !s.frames.try() {
		if !s.awaitFrames() {
			s.cut()
			return 0, errEnded
		}
	}
	defer s.frames.unlock()
	if s.said {
		return 0, errSaid
	}
	// Of pieces no one knows where a frame begins; with Compression, nothing but control frames comes from Conn.
	s.said = !s.pieces && len(p) > 0 && p[0] == bitFin|opClose
	return s.write(p)
}

func (s *socket) awaitFrames() bool {
	patience := time.NewTimer(closeTimeout)
	defer patience.Stop()
	if s.frames.ask() {
		return true
	}
	select {
	case <-s.frames.wake:
		return true
	case <-patience.C:
		return false
	}
}

// write hands p to the system. s.frames is shut.
func (s *socket) write(p []byte) (int, error) {
	n, err := s.rwc.Write(p)
	s.note(err)
	return n, err
}

// writev is write for several pieces.
func (s *socket) writev(parts net.Buffers) error {
	_, err := parts.WriteTo(s.rwc)
	s.note(err)
	return err
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

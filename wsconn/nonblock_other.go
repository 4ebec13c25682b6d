//go:build !unix

package wsconn

import (
	"errors"
	"net"
)

// A nonblock is what this system does not have: see nonblock_unix.go.
type nonblock struct{}

func newNonblock(net.Conn, func() []byte, func()) *nonblock { return nil }

func (*nonblock) read() (int, error) { return 0, errors.ErrUnsupported }

func (*nonblock) write([]byte) (int, error) { return 0, errors.ErrUnsupported }

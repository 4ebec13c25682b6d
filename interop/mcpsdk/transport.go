package mcpsdk

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/peer"
)

// ErrConnected is returned by the second Connect of a Transport.
var ErrConnected = errors.New("mcpsdk: the transport is connected already")

// Transport is an [mcp.Transport] over a transport of duet. It makes one
// connection. The zero value has nothing to connect: use New.
type Transport struct {
	below peer.Transport
	used  atomic.Bool
}

// New makes a Transport of t, which nobody else may use from then on; Close of the
// session closes it. It panics if t is nil.
func New(t peer.Transport) *Transport {
	if t == nil {
		panic("mcpsdk: New needs a transport")
	}
	return &Transport{below: t}
}

// Connect implements [mcp.Transport]. Client.Connect and Server.Connect call it;
// called again, also at the same time, it returns ErrConnected.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	if t.used.Swap(true) {
		return nil, ErrConnected
	}
	return newConn(t.below), nil
}

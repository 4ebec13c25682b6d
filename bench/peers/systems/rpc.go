package systems

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/duetrpc/duet/bench/load"
)

// Names of what the echoing end of a JSON-RPC library serves.
const (
	echoMethod = "echo" // a Doc and back, decoded and encoded
	rawMethod  = "raw"  // the text of params and back
	noteMethod = "note" // a Doc, decoded and counted
)

// allKinds are what every JSON-RPC library here can do.
func allKinds() []load.Kind { return []load.Kind{load.Typed, load.Raw, load.Notify} }

// rpcPair is a pair of a JSON-RPC library, from the functions its adapter has.
type rpcPair struct {
	call    func(ctx context.Context, method string, in, out any) error
	notify  func(ctx context.Context, method string, in any) error
	close   func() error
	handled atomic.Uint64
}

func (p *rpcPair) Call(ctx context.Context, in, out *load.Doc) error {
	return p.call(ctx, echoMethod, in, out)
}

func (p *rpcPair) CallRaw(ctx context.Context, in json.RawMessage, out *json.RawMessage) error {
	return p.call(ctx, rawMethod, in, out)
}

func (p *rpcPair) Notify(ctx context.Context, in *load.Doc) error {
	return p.notify(ctx, noteMethod, in)
}

func (p *rpcPair) Handled() uint64 { return p.handled.Load() }

func (p *rpcPair) Close() error { return p.close() }

package stream

import (
	"fmt"

	"github.com/duetrpc/duet/peer"
)

// Option is a choice for one call, or for one registered method.
type Option func(*options)

type options struct {
	window, buffer amount
	chosen         bool // the window
	optional       bool
	call           []peer.CallOption
	handle         []peer.HandleOption
}

func chosen(opts []Option) options {
	o := options{window: amount{64, 1 << 20}, buffer: amount{4096, 8 << 20}}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	o.buffer = amount{max(o.buffer.items, o.window.items), max(o.buffer.bytes, o.window.bytes)}
	return o
}

// Window bounds what is on its way to the end that gives the option and receives: so
// many items, so many bytes of their JSON. It panics if either is less than one.
// Without it these are 64 items and 1 MiB, and up to 1,024 items for who uses that many
// within 10 ms.
func Window(items int, bytes int64) Option {
	refuse("Window", items, bytes)
	// What is larger than any stream needs must not be larger than a number on the wire.
	window := amount{min(int64(items), 1<<52), min(bytes, 1<<52)}
	return func(o *options) { o.window, o.chosen = window, true }
}

// Buffer bounds what is kept of items that come without credit, of an end that does
// not know of it. It is never less than the window. It panics if either is less than
// one. Without it these are 4,096 items and 8 MiB.
func Buffer(items int, bytes int64) Option {
	refuse("Buffer", items, bytes)
	return func(o *options) { o.buffer = amount{int64(items), bytes} }
}

func refuse(name string, items int, bytes int64) {
	if items < 1 || bytes < 1 {
		panic(fmt.Sprintf("stream: %s of %d items and %d bytes", name, items, bytes))
	}
}

// Optional lets a Method be called by who asks for no items, as partial results are
// asked for in LSP, or not: send is nil then. Those of a call have no use for it.
func Optional() Option { return func(o *options) { o.optional = true } }

// Calling passes options on to the call. Those of a handler have no use for it. The
// function of peer.OnProgress runs in a goroutine of the stream, beside the loop over its
// items, and has returned when the loop has.
func Calling(opts ...peer.CallOption) Option {
	return func(o *options) { o.call = append(o.call, opts...) }
}

// Handling passes options on to the registration of a handler. Those of a call have no
// use for it.
func Handling(opts ...peer.HandleOption) Option {
	return func(o *options) { o.handle = append(o.handle, opts...) }
}

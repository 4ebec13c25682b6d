package load_test

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/duetrpc/duet/bench/load"
)

// fake is a Pair of functions; those left out echo.
type fake struct {
	call   func(ctx context.Context, in, out *load.Doc) error
	raw    func(in json.RawMessage) json.RawMessage
	notify func(f *fake)

	calls, handled atomic.Uint64
}

func (f *fake) Call(ctx context.Context, in, out *load.Doc) error {
	f.calls.Add(1)
	if f.call != nil {
		return f.call(ctx, in, out)
	}
	*out = *in
	return nil
}

func (f *fake) CallRaw(_ context.Context, in json.RawMessage, out *json.RawMessage) error {
	f.calls.Add(1)
	if f.raw != nil {
		in = f.raw(in)
	}
	*out = append((*out)[:0], in...)
	return nil
}

func (f *fake) Notify(context.Context, *load.Doc) error {
	f.calls.Add(1)
	if f.notify != nil {
		f.notify(f)
	} else {
		f.handled.Add(1)
	}
	return nil
}

func (f *fake) Handled() uint64 { return f.handled.Load() }

func (f *fake) Close() error { return nil }

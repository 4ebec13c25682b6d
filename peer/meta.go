package peer

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/duetrpc/duet/codec"
)

// metaMember is the member of params that holds what is about the request and not
// of it (MCP "_meta", ACP "Extensibility").
const metaMember = "_meta"

// Meta is what params._meta holds: JSON values by name. The nil Meta is empty.
// Trace context goes by the names traceparent, tracestate and baggage, as MCP and ACP
// have it.
type Meta map[string]json.RawMessage

// Text returns the string under name, or "" where there is none.
func (m Meta) Text(name string) string {
	text, _ := codec.Unquote(m[name])
	return text
}

// SetText puts a string under name.
func (m Meta) SetText(name, text string) { m[name] = codec.AppendString(nil, text) }

type metaKey struct{}

// WithMeta returns a context whose calls and notifications carry m in their
// params._meta, beside what ctx's carry already; of one name the newest counts, and
// before all of them what the params have there themselves. Params that are an array
// carry nothing, and absent ones become an object. m is copied. Members that this library
// sends itself, the token for progress and those whose names begin with
// "io.github.duetrpc/", are left out, so that what MetaFrom returned can be passed on.
func WithMeta(ctx context.Context, m Meta) context.Context {
	all := make(Meta, len(m))
	for name, value := range m {
		all[name] = slices.Clone(value)
	}
	for name, value := range outgoingMeta(ctx) {
		if _, ok := all[name]; !ok {
			all[name] = value
		}
	}
	if len(m) == 0 {
		return ctx
	}
	return context.WithValue(ctx, metaKey{}, all)
}

func outgoingMeta(ctx context.Context) Meta {
	m, _ := ctx.Value(metaKey{}).(Meta)
	return m
}

// MetaFrom returns what the request whose handler ctx belongs to has in its
// params._meta; with Options.TopLevelTrace also the trace context that stands beside
// the params. It returns nil where there is nothing, and for a context that is not a
// handler's, or whose handler has returned. The Meta is the caller's own.
func MetaFrom(ctx context.Context) Meta {
	var m Meta
	withRequest(ctx, func(r *incoming) {
		add := func(object []byte, wanted func(name []byte) bool) {
			for o := codec.ObjectOf(object); o.Next(); {
				if wanted(o.Name) {
					if m == nil {
						m = Meta{}
					}
					m[string(o.Name)] = slices.Clone(o.Value)
				}
			}
		}
		add(codec.Find(r.req.Params, metaMember), func([]byte) bool { return true })
		add(r.text, func(name []byte) bool { return isTrace(string(name)) })
	})
	return m
}

func isTrace(name string) bool { return name == "traceparent" || name == "tracestate" }

// RequestFrom returns the request whose handler ctx belongs to, for handlers that are
// not given it. It reports false for a context that is not a handler's, or whose
// handler has returned.
func RequestFrom(ctx context.Context) (*Request, bool) {
	var req *Request
	withRequest(ctx, func(r *incoming) {
		copied := r.req
		req = &copied
	})
	return req, req != nil
}

// withRequest calls f with the request whose handler ctx belongs to, if that has not
// returned. What f gets is valid until f returns, whatever the handler does.
func withRequest(ctx context.Context, f func(r *incoming)) {
	own := requestOf(ctx)
	if own == nil {
		return
	}
	c := own.c
	c.mu.Lock()
	r := own.in
	if r == nil || own.isOver() {
		c.mu.Unlock()
		return
	}
	// The buffer stays, and the request is a copy: the next one may be in r already
	// when f looks.
	buf := r.buf
	buf.retain()
	seen := incoming{req: r.req, text: r.text}
	c.mu.Unlock()
	defer buf.release()
	f(&seen)
}

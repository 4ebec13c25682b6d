package peer

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
)

// Registry is a Handler that finds the handler of a method by its exact name.
// The zero value is empty and ready. Methods are registered before the registry
// is served; a mistake in a registration panics, as with http.ServeMux, and so
// does a registration once a connection uses it. Serving is then free of locks.
type Registry struct {
	entries map[string]*entry
	served  atomic.Bool
}

// entry is what is known of one method.
type entry struct {
	name         string
	doc          string
	call, notify Handler // nil where not registered for it
	params       reflect.Type
	result       reflect.Type
	positional   bool
	optional     bool
}

// MethodInfo describes a registered method.
type MethodInfo struct {
	Name         string
	Doc          string
	Call         bool         // registered with Handle
	Notification bool         // registered with HandleNotification
	Params       reflect.Type // of a typed contract, else nil
	Result       reflect.Type // of a typed contract, else nil
}

// HandleOption is a choice for one registered method.
type HandleOption func(*entry)

// Doc describes the method, for Registry.Methods and what is built on it.
func Doc(text string) HandleOption { return func(e *entry) { e.doc = text } }

// Positional lets a typed handler take an array too: its elements are the
// fields of the params struct in their order. Fewer elements leave the rest
// zero; more are an error.
func Positional() HandleOption { return func(e *entry) { e.positional = true } }

// OptionalParams lets a typed handler be called without params; it then gets
// the zero value. For a params type without fields that is always so.
func OptionalParams() HandleOption { return func(e *entry) { e.optional = true } }

// Handle registers h for calls of method, and for notifications of that name
// too unless the profile says otherwise. It panics if method is registered for
// calls already or starts with "rpc.", if h is nil, or if r is being served.
func (r *Registry) Handle(method string, h Handler, opts ...HandleOption) {
	r.refuseReserved(method)
	r.entry(method, h, opts).setCall(h)
}

// HandleNotification registers h for notifications of method. A method may be
// registered for both. It panics like Handle.
func (r *Registry) HandleNotification(method string, h Handler, opts ...HandleOption) {
	r.refuseReserved(method)
	r.entry(method, h, opts).setNotify(h)
}

// HandleExtension registers h for calls of a method whose name starts with
// "rpc.". Such names are reserved for extensions of JSON-RPC itself
// (JSON-RPC 2.0 section 4), rpc.discover for instance; it panics for any other.
func (r *Registry) HandleExtension(method string, h Handler, opts ...HandleOption) {
	if !strings.HasPrefix(method, "rpc.") {
		panic(fmt.Sprintf("peer: extension method %q does not start with \"rpc.\"", method))
	}
	r.entry(method, h, opts).setCall(h)
}

func (r *Registry) refuseReserved(method string) {
	if strings.HasPrefix(method, "rpc.") {
		panic(fmt.Sprintf("peer: method %q: names starting with \"rpc.\" are reserved (JSON-RPC 2.0 section 4)", method))
	}
}

// entry returns the entry of method, made if need be, with opts applied.
func (r *Registry) entry(method string, h Handler, opts []HandleOption) *entry {
	switch {
	case r.served.Load():
		panic(fmt.Sprintf("peer: method %q registered after the registry was served", method))
	case method == "":
		panic("peer: method without a name registered")
	case h == nil:
		panic(fmt.Sprintf("peer: nil handler registered for method %q", method))
	}
	e := r.entries[method]
	if e == nil {
		e = &entry{name: method}
		if r.entries == nil {
			r.entries = make(map[string]*entry)
		}
		r.entries[method] = e
	}
	for _, opt := range opts {
		opt(e)
	}
	return e
}

func (e *entry) setCall(h Handler) {
	if e.call != nil {
		panic(fmt.Sprintf("peer: method %q registered twice", e.name))
	}
	e.call = h
}

func (e *entry) setNotify(h Handler) {
	if e.notify != nil {
		panic(fmt.Sprintf("peer: notification %q registered twice", e.name))
	}
	e.notify = h
}

// Methods describes what is registered, sorted by name.
func (r *Registry) Methods() []MethodInfo {
	infos := make([]MethodInfo, 0, len(r.entries))
	for _, e := range r.entries {
		infos = append(infos, MethodInfo{
			Name: e.name, Doc: e.doc,
			Call: e.call != nil, Notification: e.notify != nil,
			Params: e.params, Result: e.result,
		})
	}
	slices.SortFunc(infos, func(a, b MethodInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// ServeRPC runs the handler of req.Method. There being none is the *Error
// method not found.
func (r *Registry) ServeRPC(ctx context.Context, req *Request) (any, error) {
	if h := r.handler(req); h != nil {
		return h.ServeRPC(ctx, req)
	}
	return nil, madeError{&Error{Code: codec.MethodNotFound, Message: "method not found"}}
}

func (r *Registry) handler(req *Request) Handler {
	e := r.entries[req.Method]
	switch {
	case e == nil:
		return nil
	case !req.IsNotification():
		return e.call
	case e.notify != nil || req.Conn.opts.Profile.NamedNotifications:
		return e.notify
	default:
		return e.call
	}
}

// known is the name of the method where it is registered. Names that are not are
// the other end's, and neither counted by name nor logged.
func (e *entry) known() string {
	if e == nil {
		return otherMethod
	}
	return e.name
}

func (r *Registry) lookup(method []byte) *entry { return r.entries[string(method)] }
func (r *Registry) freeze()                     { r.served.Store(true) }

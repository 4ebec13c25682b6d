package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
)

// Registry is a Handler that finds the handler of a method by its exact name.
// The zero value is empty and ready. Methods are registered before the registry
// is given to a Server or a connection; a mistake in a registration panics, as
// with http.ServeMux, and so does a registration after that. Serving is then free
// of locks.
type Registry struct {
	entries map[string]*entry
	served  atomic.Bool
}

// entry is what is known of one method.
type entry struct {
	name         string
	call, notify *handling // nil where not registered for it
}

// handling is one registration.
type handling struct {
	h              Handler
	framed         frameHandler // h, where it is one
	doc            string
	positional     bool
	optional       bool
	params, result reflect.Type
}

// MethodInfo describes a registered method.
type MethodInfo struct {
	Name         string
	Doc          string
	Notification bool         // registered with HandleNotification, not with Handle
	Params       reflect.Type // of a typed contract, else nil
	Result       reflect.Type // of a typed contract, else nil
}

// HandleOption is a choice for one registered method.
type HandleOption func(*handling)

// Doc describes the method, for Registry.Methods and what is built on it.
func Doc(text string) HandleOption { return func(r *handling) { r.doc = text } }

// Positional lets a typed handler take an array too: its elements are the
// fields of the params struct in their order. Fewer elements leave the rest
// zero; more are an error.
func Positional() HandleOption { return func(r *handling) { r.positional = true } }

// OptionalParams lets a typed handler be called without params; it then gets
// the zero value. For a params type without fields, and for any, that is always so.
func OptionalParams() HandleOption { return func(r *handling) { r.optional = true } }

// Handle registers h for calls of method, and for notifications of that name
// too unless the profile says otherwise. It panics if method is empty, registered
// for calls already or starts with "rpc.", if h is nil, if opts has what only a
// typed handler can heed, or if r was given to a Server or a connection.
func (r *Registry) Handle(method string, h Handler, opts ...HandleOption) {
	r.handle(method, h, opts).refuseTyped(method)
}

func (r *Registry) handle(method string, h Handler, opts []HandleOption) *handling {
	refuseReserved(method)
	return r.register(method, h, opts, func(e *entry) **handling { return &e.call })
}

// HandleNotification registers h for notifications of method. A method may be
// registered for both. It panics like Handle.
func (r *Registry) HandleNotification(method string, h Handler, opts ...HandleOption) {
	r.handleNotification(method, h, opts).refuseTyped(method)
}

func (r *Registry) handleNotification(method string, h Handler, opts []HandleOption) *handling {
	refuseReserved(method)
	return r.register(method, h, opts, func(e *entry) **handling { return &e.notify })
}

// HandleExtension registers h for calls of a method whose name starts with
// "rpc.". Such names are reserved for extensions of JSON-RPC itself
// (JSON-RPC 2.0 section 4), rpc.discover for instance; it panics for any other.
func (r *Registry) HandleExtension(method string, h Handler, opts ...HandleOption) {
	if !strings.HasPrefix(method, "rpc.") {
		panic(fmt.Sprintf("peer: extension method %q does not start with \"rpc.\"", method))
	}
	r.register(method, h, opts, func(e *entry) **handling { return &e.call }).refuseTyped(method)
}

// refuseTyped refuses options that only a typed handler can heed.
func (r *handling) refuseTyped(method string) {
	if r.positional || r.optional {
		panic(fmt.Sprintf("peer: method %q: Positional and OptionalParams are for typed handlers", method))
	}
}

func refuseReserved(method string) {
	if strings.HasPrefix(method, "rpc.") {
		panic(fmt.Sprintf("peer: method %q: names starting with \"rpc.\" are reserved (JSON-RPC 2.0 section 4)", method))
	}
}

// register puts h where place says. Every mistake of a registration ends here.
func (r *Registry) register(method string, h Handler, opts []HandleOption, place func(*entry) **handling) *handling {
	switch {
	case r.served.Load():
		panic(fmt.Sprintf("peer: method %q registered after the registry was given to a server or a connection", method))
	case method == "":
		panic("peer: method without a name registered")
	case isNil(h):
		panic(fmt.Sprintf("peer: nil handler registered for method %q", method))
	}
	e := r.entries[method]
	if e == nil {
		e = &entry{name: method}
	}
	at := place(e)
	if *at != nil {
		panic(fmt.Sprintf("peer: method %q registered twice", method))
	}
	*at = &handling{h: h}
	for _, opt := range opts {
		opt(*at)
	}
	if r.entries == nil {
		r.entries = make(map[string]*entry)
	}
	r.entries[method] = e
	return *at
}

// isNil reports whether h is no handler, in either of the forms it may be given.
func isNil(h Handler) bool {
	f, ok := h.(HandlerFunc)
	return h == nil || ok && f == nil
}

// Methods describes what is registered, sorted by name. A name registered for
// calls and for notifications stands twice.
func (r *Registry) Methods() []MethodInfo {
	infos := make([]MethodInfo, 0, len(r.entries))
	add := func(e *entry, h *handling, notification bool) {
		if h != nil {
			infos = append(infos, MethodInfo{e.name, h.doc, notification, h.params, h.result})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[name]
		add(e, e.call, false)
		add(e, e.notify, true)
	}
	return infos
}

// ServeRPC runs the handler of req.Method. There being none is the *Error
// method not found.
func (r *Registry) ServeRPC(ctx context.Context, req *Request) (any, error) {
	if h := r.handler(req); h != nil {
		return h.ServeRPC(ctx, req)
	}
	if e := r.entries[req.Method]; e != nil && req.IsNotification() {
		return nil, errors.New("peer: the method is registered for calls only, and the profile has notifications registered by HandleNotification")
	}
	return nil, madeError{&Error{Code: codec.MethodNotFound, Message: "method not found"}}
}

func (r *Registry) handler(req *Request) Handler {
	e := r.entries[req.Method]
	if e == nil {
		return nil
	}
	if chosen := e.handling(req.IsNotification(), req.Conn.opts.Profile); chosen != nil {
		return chosen.h
	}
	return nil
}

// handling is the registration for calls, or for notifications, or nil.
func (e *entry) handling(notification bool, p *Profile) *handling {
	if notification && (e.notify != nil || p.NamedNotifications) {
		return e.notify
	}
	return e.call
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

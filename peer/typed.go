package peer

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Method is the contract of a call that both ends share: its name, the type of
// its params and the type of its result. It is meant to be a constant:
//
//	const Add = peer.Method[Pair, int]("add")
//
// Params and results are the user's own copies, json.RawMessage included. A method
// without params is a Method[struct{}, R], which sends {}, or a Method[any, R] that
// is called with nil, which sends none; both are handled with params and without.
type Method[P, R any] string

// Call calls the method at the other end of c.
func (m Method[P, R]) Call(ctx context.Context, c Caller, params P, opts ...CallOption) (R, error) {
	if conn := direct[P](c); conn != nil {
		return m.callDirect(ctx, conn, params, opts)
	}
	var result R
	err := c.Call(ctx, string(m), params, &result, opts...)
	return result, err
}

// callDirect is Call without anybody in between. Params are encoded from a frame
// and the result is decoded into it, and the frame stays with the slot of the call,
// for the next one of these types.
func (m Method[P, R]) callDirect(ctx context.Context, c *Conn, params P, opts []CallOption) (result R, err error) {
	call, err := c.begin(ctx, string(m), opts)
	if err != nil {
		return result, err
	}
	slot := call.slot
	defer c.called(slot)
	f, ok := slot.Kept.(*callFrame[P, R])
	if !ok {
		f = new(callFrame[P, R])
		f.pooled = Reusable(reflect.TypeFor[P]()) && Reusable(reflect.TypeFor[R]())
	}
	slot.Kept = nil // until it is known that nobody's values are in it
	f.params = params
	err = c.complete(ctx, call, &f.params, &f.result)
	result = f.result
	if f.pooled {
		f.values = values[P, R]{}
		slot.Kept = f
	} else {
		slot.Kept = &callFrame[P, R]{} // that these are not
	}
	return result, err
}

// values are what a call is about.
type values[P, R any] struct {
	params P
	result R
}

// callFrame is the memory of a caller.
type callFrame[P, R any] struct {
	values[P, R]
	pooled bool // no code of a user gets a pointer into it, which it could keep
}

// direct returns the connection that c is, with nothing in between, if params of
// type P are to go to it by their pointer: it uses JSONv2, the JSON is the same, and
// P is nothing that fits an interface as it is. Otherwise it returns nil.
func direct[P any](c Caller) *Conn {
	if conn, ok := c.(*Conn); ok {
		c = conn.caller
	}
	if o, ok := c.(outgoing); ok && o.c.plainJSON && !isReference(reflect.TypeFor[P]()) {
		return o.c
	}
	return nil
}

// isReference reports whether a t is a pointer, or an interface that may hold one.
func isReference(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer
}

// Handle registers f as the handler of the method, as Registry.Handle does.
// Params that do not fit P are answered with -32602 and do not reach f.
func (m Method[P, R]) Handle(r *Registry, f func(ctx context.Context, params P) (R, error), opts ...HandleOption) {
	h := &typed[P, R]{run: f}
	if f == nil {
		h = nil
	}
	reg := r.handle(string(m), h.handler(), opts)
	reg.result = reflect.TypeFor[R]()
	h.describe(string(m), reg)
}

// Notification is the contract of a notification that both ends share: its name
// and the type of its params.
type Notification[P any] string

// Notify sends the notification to the other end of c.
func (n Notification[P]) Notify(ctx context.Context, c Caller, params P) error {
	if conn := direct[P](c); conn != nil {
		return conn.Notify(ctx, string(n), &params)
	}
	return c.Notify(ctx, string(n), params)
}

// Handle registers f as the handler of the notification, as
// Registry.HandleNotification does.
func (n Notification[P]) Handle(r *Registry, f func(ctx context.Context, params P) error, opts ...HandleOption) {
	h := &typed[P, none]{run: func(ctx context.Context, params P) (none, error) { return none{}, f(ctx, params) }}
	if f == nil {
		h = nil
	}
	h.describe(string(n), r.handleNotification(string(n), h.handler(), opts))
}

// none is the result of a notification.
type none struct{}

// typed is the handler of a contract: it decodes the params, then runs.
type typed[P, R any] struct {
	run      func(context.Context, P) (R, error)
	optional bool
	open     bool      // R is a reference, which is the result itself
	pooled   bool      // no code of a user gets a pointer into a frame
	fields   []string  // JSON names in order, where the params may be positional
	frames   sync.Pool // of *typedFrame[P, R]
}

// typedFrame holds what one request decodes into and is encoded from, so that
// neither has to be made anew for each. The handler gets and gives copies.
type typedFrame[P, R any] struct {
	values[P, R]
	home *sync.Pool // nil where user code may have kept a pointer into it
}

// frame is what has to be freed once the answer is encoded.
type frame interface{ free() }

func (f *typedFrame[P, R]) free() {
	if f.home != nil {
		f.values = values[P, R]{}
		f.home.Put(f)
	}
}

// frameHandler is a handler whose result lies in a frame: a pointer to it is what
// serveFrame returns.
type frameHandler interface {
	serveFrame(ctx context.Context, req *Request) (frame, any, error)
}

// framed is the handler of r if it is a frameHandler and nobody stands between it
// and the connection: a middleware is to see the result itself.
func (c *Conn) framed(r *incoming) frameHandler {
	if !c.plain || r.entry == nil {
		return nil
	}
	if h := r.entry.handling(r.isNotification(), c.opts.Profile); h != nil {
		return h.framed
	}
	return nil
}

// handler is h, or a nil Handler for a nil h, which the registry refuses.
func (h *typed[P, R]) handler() Handler {
	if h == nil {
		return nil
	}
	return h
}

// describe takes the options of the registration, which are known once it is
// made.
func (h *typed[P, R]) describe(method string, reg *handling) {
	t := reflect.TypeFor[P]()
	reg.params = t
	reg.framed = h
	h.pooled = Reusable(t) && Reusable(reflect.TypeFor[R]())
	h.open = isReference(reflect.TypeFor[R]())
	refuseScalar(method, t)
	h.optional = reg.optional || t.Kind() == reflect.Interface || t.Kind() == reflect.Struct && t.NumField() == 0
	if reg.positional {
		h.fields = fieldNames(method, t)
	}
}

func (h *typed[P, R]) ServeRPC(ctx context.Context, req *Request) (any, error) {
	f, _, err := h.serveFrame(ctx, req)
	if err != nil {
		return nil, err
	}
	result := any(f.(*typedFrame[P, R]).result)
	f.free()
	if _, ok := result.(none); ok {
		return nil, nil
	}
	return result, nil
}

func (h *typed[P, R]) serveFrame(ctx context.Context, req *Request) (frame, any, error) {
	f, ok := h.frames.Get().(*typedFrame[P, R])
	if !ok {
		f = new(typedFrame[P, R])
		if h.pooled {
			f.home = &h.frames
		}
	}
	err := h.decode(req, &f.params)
	params := f.params
	if h.pooled { // the handler's alone
		var zero P
		f.params = zero
	}
	if err == nil {
		f.result, err = h.run(ctx, params)
	}
	if err != nil {
		f.free()
		return nil, nil, err
	}
	if h.open {
		return f, f.result, nil
	}
	return f, &f.result, nil
}

func (h *typed[P, R]) decode(req *Request, params *P) error {
	if req.Params == nil && !h.optional {
		return mismatch{Reason: "missing"}.refuse()
	}
	if h.fields != nil && req.Params != nil && req.Params[0] == '[' {
		named, err := byName(req.Params, h.fields)
		if err != nil {
			return err
		}
		return req.Conn.decodeParams(named, params, h.fields)
	}
	return req.Decode(params)
}

// Reusable reports whether no method of a user's type gets a pointer into a value of
// type t while it is encoded or decoded, which it could keep: then its memory may serve
// for the next value.
func Reusable(t reflect.Type) bool {
	if t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[time.Time]() {
		return true
	}
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			if !Reusable(f.Type) {
				return false
			}
		}
	case reflect.Array:
		if !Reusable(t.Elem()) {
			return false
		}
	}
	return t.Name() == "" || t.PkgPath() == "" || reflect.PointerTo(t).NumMethod() == 0
}

// refuseScalar panics for params that are written as neither an array nor an
// object, and so can never be sent (JSON-RPC 2.0 section 4.2).
func refuseScalar(method string, t reflect.Type) {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		// A type with a JSON form of its own may be anything.
		custom := slices.ContainsFunc([]string{"MarshalJSON", "MarshalJSONTo", "UnmarshalJSON", "UnmarshalJSONFrom"}, func(name string) bool {
			_, has := reflect.PointerTo(t).MethodByName(name)
			return has
		})
		if !custom {
			panic("peer: method " + strconv.Quote(method) + ": params of type " + t.String() + " are neither an array nor an object")
		}
	}
}

// fieldNames lists the JSON names of the exported fields of the struct t. It
// panics where t has no such order.
func fieldNames(method string, t reflect.Type) []string {
	if t.Kind() != reflect.Struct {
		panic("peer: method " + strconv.Quote(method) + ": Positional needs params that are a struct")
	}
	names := []string{}
	for f := range t.Fields() {
		name, skip := fieldName(f)
		if f.Anonymous {
			panic("peer: method " + strconv.Quote(method) + ": Positional params cannot embed " + f.Name)
		}
		if !skip {
			names = append(names, name)
		}
	}
	return names
}

package peer

import (
	"context"
	"reflect"
	"slices"
	"strconv"
)

// Method is the contract of a call that both ends share: its name, the type of
// its params and the type of its result. It is meant to be a constant:
//
//	const Add = peer.Method[Pair, int]("add")
//
// Params and results are the user's own copies, json.RawMessage included.
type Method[P, R any] string

// Call calls the method at the other end of c.
func (m Method[P, R]) Call(ctx context.Context, c Caller, params P, opts ...CallOption) (R, error) {
	var result R
	err := c.Call(ctx, string(m), params, &result, opts...)
	return result, err
}

// Handle registers f as the handler of the method, as Registry.Handle does.
// Params that do not fit P are answered with -32602 and do not reach f.
func (m Method[P, R]) Handle(r *Registry, f func(ctx context.Context, params P) (R, error), opts ...HandleOption) {
	h := &typed[P]{run: func(ctx context.Context, params P) (any, error) { return f(ctx, params) }}
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
	return c.Notify(ctx, string(n), params)
}

// Handle registers f as the handler of the notification, as
// Registry.HandleNotification does.
func (n Notification[P]) Handle(r *Registry, f func(ctx context.Context, params P) error, opts ...HandleOption) {
	h := &typed[P]{run: func(ctx context.Context, params P) (any, error) { return nil, f(ctx, params) }}
	if f == nil {
		h = nil
	}
	h.describe(string(n), r.handleNotification(string(n), h.handler(), opts))
}

// typed is the handler of a contract: it decodes the params, then runs.
type typed[P any] struct {
	run      func(context.Context, P) (any, error)
	optional bool
	fields   []string // JSON names in order, where the params may be positional
}

// handler is h, or a nil Handler for a nil h, which the registry refuses.
func (h *typed[P]) handler() Handler {
	if h == nil {
		return nil
	}
	return h
}

// describe takes the options of the registration, which are known once it is
// made.
func (h *typed[P]) describe(method string, reg *handling) {
	t := reflect.TypeFor[P]()
	reg.params = t
	refuseScalar(method, t)
	h.optional = reg.optional || t.Kind() == reflect.Struct && t.NumField() == 0
	if reg.positional {
		h.fields = fieldNames(method, t)
	}
}

func (h *typed[P]) ServeRPC(ctx context.Context, req *Request) (any, error) {
	var params P
	if req.Params == nil && !h.optional {
		return nil, mismatch{Reason: "missing"}.refuse()
	}
	if h.fields != nil && req.Params != nil && req.Params[0] == '[' {
		named, err := byName(req.Params, h.fields)
		if err != nil {
			return nil, err
		}
		if err := req.Conn.decodeParams(named, &params, h.fields); err != nil {
			return nil, err
		}
	} else if err := req.Decode(&params); err != nil {
		return nil, err
	}
	return h.run(ctx, params)
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

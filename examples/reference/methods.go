package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// Params of the methods. Numbers stay text, so that nothing is lost and what is
// missing can be told from zero.
type (
	addParams struct {
		A json.RawMessage `json:"a"`
		B json.RawMessage `json:"b"`
	}
	subtractParams struct {
		Minuend    json.RawMessage `json:"minuend"`
		Subtrahend json.RawMessage `json:"subtrahend"`
	}
	sleepParams struct {
		MS int64 `json:"ms"`
	}
	notifyParams struct {
		N int `json:"n"`
	}
	callParams struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	tick struct {
		I int `json:"i"`
	}
	countParams struct {
		N  int   `json:"n"`
		MS int64 `json:"ms"`
	}
	streamParams struct {
		N     int `json:"n"`
		Bytes int `json:"bytes"`
	}
	row struct {
		I    int    `json:"i"`
		Data string `json:"data"`
	}
)

const (
	maxTicks = 100_000
	maxBytes = 1 << 20
	maxSleep = time.Hour
)

// methods registers what a reference server offers under p. Where the protocol
// wants objects, results come wrapped and the positional methods are left out.
func methods(p *peer.Profile) *peer.Registry {
	objects := p.Rules.ObjectParams
	// wrap puts a result into an object where the protocol wants one.
	wrap := func(name string, result any) any {
		if objects {
			return map[string]any{name: result}
		}
		return result
	}
	reg := &peer.Registry{}
	handle := func(method string, f peer.HandlerFunc) { reg.Handle(method, f) }

	handle("echo", func(_ context.Context, req *peer.Request) (any, error) {
		if req.Params == nil && objects {
			return json.RawMessage("{}"), nil
		}
		return req.Params, nil
	})
	peer.Method[addParams, any]("add").Handle(reg, func(_ context.Context, in addParams) (any, error) {
		total, err := sum(in.A, in.B)
		return wrap("sum", total), err
	}, positional(objects)...)
	handle("fail", func(context.Context, *peer.Request) (any, error) {
		return nil, &peer.Error{Code: 1234, Message: "boom", Data: json.RawMessage(`{"k":1}`)}
	})
	handle("panic", func(context.Context, *peer.Request) (any, error) { panic("asked to") })
	peer.Method[sleepParams, any]("sleep").Handle(reg, func(ctx context.Context, in sleepParams) (any, error) {
		if err := sleep(ctx, in.MS); err != nil {
			return nil, err
		}
		if objects {
			return struct{}{}, nil
		}
		return in.MS, nil
	})
	peer.Method[notifyParams, any]("notifyMe").Handle(reg, func(ctx context.Context, in notifyParams) (any, error) {
		if err := within("n", in.N, maxTicks); err != nil {
			return nil, err
		}
		caller, _ := peer.CallerFrom(ctx)
		for i := range in.N {
			if err := caller.Notify(ctx, "tick", tick{i}); err != nil {
				return nil, err
			}
		}
		return wrap("sent", in.N), nil
	})
	peer.Method[callParams, any]("callMe").Handle(reg, func(ctx context.Context, in callParams) (any, error) {
		caller, _ := peer.CallerFrom(ctx)
		var result json.RawMessage
		if err := caller.Call(ctx, in.Method, in.Params, &result); err != nil {
			return nil, peer.Forward(err)
		}
		return wrap("value", result), nil
	})
	peer.Method[countParams, any]("count").Handle(reg, func(ctx context.Context, in countParams) (any, error) {
		if err := within("n", in.N, maxTicks); err != nil {
			return nil, err
		}
		progress, asked := peer.ProgressFrom(ctx)
		for i := range in.N {
			if i > 0 {
				if err := sleep(ctx, in.MS); err != nil {
					return nil, err
				}
			}
			if asked {
				if err := progress.Report(peer.Progress{Done: float64(i + 1), Total: float64(in.N)}); err != nil {
					return nil, err
				}
			}
		}
		return wrap("n", in.N), nil
	})
	stream.Method[streamParams, row, any]("stream").Handle(reg, func(_ context.Context, in streamParams, send func(row) error) (any, error) {
		if err := errors.Join(within("n", in.N, maxTicks), within("bytes", in.Bytes, maxBytes)); err != nil {
			return nil, err
		}
		data := strings.Repeat("x", in.Bytes)
		for i := range in.N {
			if err := send(row{i, data}); err != nil {
				return nil, err
			}
		}
		return wrap("n", in.N), nil
	})
	stream.Feed[struct{}, json.RawMessage, any]("collect").Handle(reg, func(_ context.Context, _ struct{}, items iter.Seq2[json.RawMessage, error]) (any, error) {
		n := 0
		for _, err := range items {
			if err != nil {
				return nil, err
			}
			n++
		}
		return wrap("n", n), nil
	})
	for _, name := range []string{"update", "notify_hello", "notify_sum"} {
		reg.HandleNotification(name, peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { return nil, nil }))
	}
	if objects {
		return reg
	}

	peer.Method[subtractParams, any]("subtract").Handle(reg, func(_ context.Context, in subtractParams) (any, error) {
		return sum(in.Minuend, negate(in.Subtrahend))
	}, peer.Positional())
	peer.Method[[]json.RawMessage, any]("sum").Handle(reg, func(_ context.Context, in []json.RawMessage) (any, error) {
		total := json.RawMessage("0")
		for _, n := range in {
			var err error
			if total, err = sum(total, n); err != nil {
				return nil, err
			}
		}
		return total, nil
	})
	handle("get_data", func(context.Context, *peer.Request) (any, error) { return []any{"hello", 5}, nil })
	return reg
}

// sleep waits until so many milliseconds are over, or ctx.
func sleep(ctx context.Context, ms int64) error {
	d := maxSleep
	if ms < maxSleep.Milliseconds() {
		d = time.Duration(max(0, ms)) * time.Millisecond
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// within refuses a number that is not from 0 to most.
func within(name string, n, most int) error {
	if n < 0 || n > most {
		return &peer.Error{Code: peer.InvalidParams, Message: fmt.Sprintf("invalid params: %s is not from 0 to %d", name, most)}
	}
	return nil
}

func positional(objects bool) []peer.HandleOption {
	if objects {
		return nil
	}
	return []peer.HandleOption{peer.Positional()}
}

// sum adds two JSON numbers: as integers where both are and the sum is one of 64
// bits, else as float64. A sum that is not finite is an error.
func sum(a, b json.RawMessage) (json.RawMessage, error) {
	x, xErr := strconv.ParseInt(string(a), 10, 64)
	y, yErr := strconv.ParseInt(string(b), 10, 64)
	if z := x + y; xErr == nil && yErr == nil && (z > x) == (y > 0) {
		return strconv.AppendInt(nil, z, 10), nil
	}
	f, err := number(a)
	if err != nil {
		return nil, err
	}
	g, err := number(b)
	if err != nil {
		return nil, err
	}
	if math.IsInf(f+g, 0) {
		return nil, &peer.Error{Code: 1, Message: "the result is not finite"}
	}
	return json.Marshal(f + g)
}

// negate changes the sign of a JSON number; anything else stays what it is.
func negate(n json.RawMessage) json.RawMessage {
	switch {
	case len(n) == 0:
		return nil
	case n[0] == '-':
		return n[1:]
	default:
		return append([]byte{'-'}, n...)
	}
}

// number reads one JSON number within the range of float64.
func number(text json.RawMessage) (float64, error) {
	var f *float64
	if json.Unmarshal(text, &f) != nil || f == nil {
		return 0, &peer.Error{Code: peer.InvalidParams, Message: "params are not numbers"}
	}
	return *f, nil
}

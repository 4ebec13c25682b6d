package peer

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"sync"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// JSON turns typed params and results into JSON text and back. Both functions
// may be called concurrently. The envelope itself never passes through it.
type JSON interface {
	// Marshal appends the JSON text of v to dst.
	Marshal(dst []byte, v any) ([]byte, error)

	// Unmarshal reads one JSON text into v and keeps nothing of data.
	Unmarshal(data []byte, v any) error
}

// JSONv2 is the default: encoding/json/v2 as published in
// github.com/go-json-experiment/json. Names match exactly, duplicate names are
// refused, nil slices and maps are written as [] and {}. A lone surrogate
// escape, as in a token stream cut in the middle of a character, is legal JSON
// and is read as U+FFFD.
type JSONv2 struct{}

// Marshal implements [JSON].
func (JSONv2) Marshal(dst []byte, v any) ([]byte, error) {
	buf := buffer{b: dst}
	err := marshalV2(&buf, v)
	return buf.b, err
}

// Unmarshal implements [JSON].
func (JSONv2) Unmarshal(data []byte, v any) error {
	return jsonv2.Unmarshal(data, v, jsontext.AllowInvalidUTF8(true))
}

// marshalV2 appends v to buf, as JSONv2 writes it. On an error buf holds what it
// held before, and perhaps more.
func marshalV2(buf *buffer, v any) error {
	start := len(buf.b)
	if marshalWith(buf, v, jsontext.PreserveRawStrings(true)) == nil {
		return nil
	}
	// Text that is not UTF-8 comes out as U+FFFD: that of strings by itself, and
	// the bytes of a RawMessage after.
	buf.b = buf.b[:start]
	err := marshalWith(buf, v, jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true))
	if raw := buf.b[start:]; !utf8.Valid(raw) {
		// One for each byte, as names that differ were found to: of a whole run they
		// would become the same.
		buf.b = append(buf.b[:start], string([]rune(string(raw)))...)
	}
	return err
}

func marshalWith(buf *buffer, v any, opts ...jsonv2.Options) error {
	buf.json = *bytes.NewBuffer(buf.b)
	err := jsonv2.MarshalWrite(&buf.json, v, opts...)
	buf.b = buf.json.Bytes()
	buf.json = bytes.Buffer{}
	return err
}

// depths remembers how deep the JSON of a type is at most. The zero value is ready, and
// may be used concurrently.
type depths struct {
	byType sync.Map // int by reflect.Type
}

// unknownDepth is that of types whose JSON somebody else writes, in whole or in part.
const unknownDepth = math.MaxInt

func (d *depths) of(t reflect.Type) int {
	if depth, ok := d.byType.Load(t); ok {
		return depth.(int)
	}
	types := 64
	depth, ok := depthOf(t, &types)
	if !ok {
		depth = unknownDepth
	}
	d.byType.Store(t, depth)
	return depth
}

// depthOf is how deep JSON values of type t are at most. It is not known where a
// value may be of any type, or writes its own JSON, or where there are more types
// than it may look at, of which a type that holds itself has no end.
func depthOf(t reflect.Type, types *int) (depth int, ok bool) {
	if *types--; *types < 0 || t == nil {
		return 0, false
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return 0, true
	case writesJSON(t):
		return 0, false
	}
	switch t.Kind() {
	case reflect.Pointer:
		return depthOf(t.Elem(), types)
	case reflect.Map:
		if _, ok := depthOf(t.Key(), types); !ok {
			return 0, false
		}
		depth, ok = depthOf(t.Elem(), types)
		return depth + 1, ok
	case reflect.Slice, reflect.Array:
		depth, ok = depthOf(t.Elem(), types)
		return depth + 1, ok
	case reflect.Struct:
		for i := range t.NumField() {
			inside, ok := depthOf(t.Field(i).Type, types)
			if !ok {
				return 0, false
			}
			depth = max(depth, inside)
		}
		return depth + 1, true
	case reflect.Interface:
		return 0, false
	}
	return 0, true
}

// writesJSON reports whether values of type t may write their own JSON.
func writesJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[jsonv2.MarshalerTo]())
}

// JSONv1 is the standard library's encoding/json, for types that rely on its
// rules: names match in any case and the last duplicate wins.
type JSONv1 struct{}

// Marshal implements [JSON].
func (JSONv1) Marshal(dst []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(dst, b...), err
}

// Unmarshal implements [JSON].
func (JSONv1) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

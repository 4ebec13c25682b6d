package peer

import (
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
)

// encodeRequest appends a call, or a notification, within MessageBytes.
func (c *Conn) encodeRequest(buf *buffer, t *text) error {
	start := len(buf.b)
	if err := c.encodeParams(buf, t); err != nil {
		return err
	}
	if t.add != nil {
		buf.b = t.add.addTop(buf.b)
	}
	if n, most := int64(len(buf.b)-start), c.opts.Limits.MessageBytes; n > most {
		return &LimitError{What: "MessageBytes", Limit: most, Got: n}
	}
	return nil
}

func (c *Conn) encodeParams(buf *buffer, t *text) error {
	if !utf8.ValidString(t.method) {
		return fmt.Errorf("%w: method %q is not UTF-8", ErrParams, t.method)
	}
	start := len(buf.b)
	if t.value != nil {
		if t.id != 0 {
			buf.b = codec.OpenCall(buf.b, &c.rules, t.id, t.method)
		} else {
			buf.b = codec.OpenNotification(buf.b, &c.rules, t.method)
		}
		at := len(buf.b)
		if err := c.encodeValue(buf, t.value); err != nil {
			return &jsonError{"params", err}
		}
		kind := first(buf.b[at:])
		switch {
		case kind == 'n': // null: nothing to send
			buf.b = buf.b[:start]
		case kind == '{', kind == '[' && !c.rules.ObjectParams:
			if t.add != nil {
				params, err := t.add.addTo(buf.b[at:])
				if err != nil {
					return err
				}
				buf.b = append(buf.b[:at], params...)
			}
			buf.b = codec.Close(buf.b)
			return nil
		default:
			// JSON-RPC 2.0 section 4.2: a structured value.
			return fmt.Errorf("%w: they begin with %q", ErrParams, kind)
		}
	}
	var params []byte
	if t.add != nil {
		params, _ = t.add.addTo(nil) // there is always a place
	}
	if t.id != 0 {
		buf.b = codec.AppendCall(buf.b, &c.rules, t.id, t.method, params)
	} else {
		buf.b = codec.AppendNotification(buf.b, &c.rules, t.method, params)
	}
	return nil
}

// encodeValue appends v. Raw JSON goes out to the last byte, once it is known to
// be JSON: a broken value must fail here, not at the other end. So must a
// marshaller that panics, which would otherwise take a slot with it.
func (c *Conn) encodeValue(buf *buffer, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.panicked(otherMethod, p)
		}
	}()
	start := len(buf.b)
	if raw, ok := v.(*json.RawMessage); ok && raw != nil {
		v = *raw
	}
	switch raw := v.(type) {
	case nil:
		buf.b = append(buf.b, "null"...)
		return nil
	case json.RawMessage:
		if raw == nil {
			buf.b = append(buf.b, "null"...)
			return nil
		}
		buf.b = append(buf.b, raw...)
	default:
		if !c.plainJSON {
			if buf.b, err = c.opts.JSON.Marshal(buf.b, v); err != nil {
				return err
			}
			break
		}
		if err := marshalV2(buf, v); err != nil {
			return err
		}
		// What JSONv2 writes by itself is JSON and UTF-8, names differ, and the type
		// tells its depth.
		if c.opts.depths.of(reflect.TypeOf(v)) <= c.valueRules.Depth {
			return nil
		}
	}
	return codec.Check(buf.b[start:], &c.valueRules)
}

// first is the first byte of a JSON text that is not white space.
func first(text []byte) byte {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

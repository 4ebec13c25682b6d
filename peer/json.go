package peer

import (
	"bytes"
	"encoding/json"
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
	return jsonv2.Unmarshal(data, v, jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
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
		buf.b = append(buf.b[:start], bytes.ToValidUTF8(raw, []byte("\uFFFD"))...)
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

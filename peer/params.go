package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/duetrpc/duet/codec"
)

// byName writes the array params as an object with the names of fields, so that
// one decoder serves both forms (JSON-RPC 2.0 section 4.2). It stops at the first
// element that has no field.
func byName(array json.RawMessage, fields []string) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(array), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, mismatch{Reason: "does not fit"}.refuse()
	}
	b := []byte{'{'}
	for i := 0; d.PeekKind() != ']'; i++ {
		if i == len(fields) {
			return nil, mismatch{Pointer: "/" + strconv.Itoa(i), Reason: fmt.Sprintf("at most %d elements are known", len(fields))}.refuse()
		}
		item, err := d.ReadValue()
		if err != nil {
			return nil, mismatch{Pointer: "/" + strconv.Itoa(i), Reason: "does not fit"}.refuse()
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = codec.AppendString(b, fields[i])
		b = append(append(b, ':'), item...)
	}
	return append(b, '}'), nil
}

// fieldName is the JSON name of f, and whether JSON leaves f out.
func fieldName(f reflect.StructField) (name string, skip bool) {
	if !f.IsExported() {
		return "", true
	}
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", true
	}
	name, _, _ = strings.Cut(tag, ",")
	if strings.ContainsAny(name, "'\"\\`") { // encoding/json takes no such name
		name = ""
	}
	return or(name, f.Name), false
}

// maxPointer bounds the pointer of a mismatch, whose names are the other end's.
const maxPointer = 256

// mismatch is the data of an invalid params error.
type mismatch struct {
	Pointer string `json:"pointer"` // RFC 6901, into params
	Want    string `json:"want,omitempty"`
	Got     string `json:"got,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// decodeParams reads params into v. fields are the names given to positional
// params.
func (c *Conn) decodeParams(params []byte, v any, fields []string) error {
	err := c.opts.JSON.Unmarshal(params, v)
	if err == nil {
		return nil
	}
	var v1 *json.UnmarshalTypeError
	if errors.As(err, &v1) {
		// encoding/json names embedded Go types in its paths and leaves indexes
		// out, so the other decoder is asked where it was.
		again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		err = jsonv2.Unmarshal(params, again, jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
	}
	return paramsError(err, fields)
}

// paramsError turns the error of a JSON decoder into the -32602 the other end
// may see: where it was, and which kinds of JSON met. Never a Go type's name,
// and never the text of a decoder's own error, which may hold one. A Go type that
// no JSON fits is this end's own fault.
func paramsError(err error, fields []string) error {
	m := mismatch{Reason: "does not fit"}
	var semantic *jsonv2.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic) && semantic.JSONKind == 0:
		return &jsonError{"params", err}
	case errors.As(err, &semantic):
		m.Pointer = string(semantic.JSONPointer)
		m.Got = kindName(semantic.JSONKind)
		m.Want = wantName(semantic.GoType)
	case errors.As(err, &syntactic):
		m.Pointer = string(syntactic.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			m.Reason = "name stands twice"
		}
	}
	if m.Want == m.Got { // a number out of range, a text in a wrong format
		m.Want, m.Got = "", ""
	}
	if m.Want != "" && m.Got != "" {
		m.Reason = ""
	}
	if fields != nil {
		m.Pointer = byIndex(m.Pointer, fields)
	}
	return m.refuse()
}

// paramsRefused is the error for params that do not fit. Its text names members
// of the params and so does not go to the log.
type paramsRefused struct{ e *Error }

func (p *paramsRefused) Error() string { return p.e.Error() }
func (p *paramsRefused) Unwrap() error { return p.e }

// refuse makes m the error that the other end sees.
func (m mismatch) refuse() error {
	if len(m.Pointer) > maxPointer {
		m.Pointer = ""
	}
	return &paramsRefused{m.object()}
}

func (m mismatch) object() *Error {
	data, _ := json.Marshal(m) // strings only: it cannot fail
	return &Error{Code: codec.InvalidParams, Message: m.String(), Data: data}
}

// String is the message of the error.
func (m mismatch) String() string {
	text := "invalid params"
	if m.Pointer != "" {
		text += ": " + m.Pointer
	}
	if m.Reason != "" {
		return text + ": " + m.Reason
	}
	return fmt.Sprintf("%s: want %s, got %s", text, m.Want, m.Got)
}

// byIndex undoes byName in a pointer: /b/c becomes /1/c.
func byIndex(pointer string, fields []string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	first = strings.NewReplacer("~1", "/", "~0", "~").Replace(first)
	i := slices.Index(fields, first)
	if i < 0 {
		return pointer
	}
	if rest != "" {
		rest = "/" + rest
	}
	return "/" + strconv.Itoa(i) + rest
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return ""
}

// wantName is the kind of JSON that a Go type is written as, where that is
// plain to see.
func wantName(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return ""
	}
	if _, custom := reflect.PointerTo(t).MethodByName("UnmarshalJSON"); custom {
		return ""
	}
	if _, text := reflect.PointerTo(t).MethodByName("UnmarshalText"); text {
		return "string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "array"
	case reflect.Interface, reflect.Func, reflect.Chan:
		return ""
	default:
		return "number"
	}
}

package codec

import "math"

// An Object goes through the members of a JSON object, in the order of the text:
//
//	for o := codec.ObjectOf(params); o.Next(); {
//		use(o.Name, o.Value)
//	}
//
// It is for text that is known to be JSON, and reads as far as that is so; any
// other value has no members. Names and values alias the text, save names with
// escapes. It is not for concurrent use.
type Object struct {
	Name  []byte // without quotes and escapes
	Value []byte // one JSON value, without space around it

	scan   scanner
	next   int // where the next member starts; -1 at the end
	member []byte
}

// ObjectOf returns an Object before its first member.
func ObjectOf(text []byte) (o Object) {
	o.Reset(text)
	return o
}

// Reset makes o one of text, before its first member; with nil it lets go of the text
// it had.
func (o *Object) Reset(text []byte) {
	o.scan.reset(text)
	o.scan.limit = math.MaxInt
	o.Name, o.Value, o.member, o.next = nil, nil, nil, -1
	if i := space(text, 0); at(text, i) == '{' {
		o.next = space(text, i+1)
	}
}

// Next goes on to the next member, and reports whether there is one.
func (o *Object) Next() bool {
	text, from := o.scan.text, o.next
	o.next = -1
	if from < 0 || at(text, from) != '"' {
		return false
	}
	end := o.scan.str(from)
	if end < 0 {
		return false
	}
	value := o.scan.colon(end)
	if value < 0 {
		return false
	}
	i := o.scan.value(value, 0)
	if i < 0 {
		return false
	}
	o.Name, o.Value, o.member = unquote(text[from:end]), text[value:i:i], text[from:i]
	if i = space(text, i); at(text, i) == ',' {
		o.next = space(text, i+1)
	}
	return true
}

// Text is the whole text that o goes through.
func (o *Object) Text() []byte { return o.scan.text }

// Find goes on to the member with that name and returns its value, or goes to the end
// and returns nil.
func (o *Object) Find(name string) []byte {
	for o.Next() {
		if string(o.Name) == name {
			return o.Value
		}
	}
	return nil
}

// Find returns the value of the member of object with that name, or nil where
// there is none, or more than one: which of two was meant is not ours to guess.
func Find(object []byte, name string) []byte {
	var value []byte
	for o := ObjectOf(object); o.Next(); {
		if string(o.Name) != name {
			continue
		}
		if value != nil {
			return nil
		}
		value = o.Value
	}
	return value
}

// A Member is one of an object. Value is a JSON value.
type Member struct {
	Name  string
	Value []byte
}

// AppendObject appends object with members: those take the place of what it has
// under their names, and stand behind the others. A nil object has none of its
// own. Neither is checked to be JSON, nor are the names of members to differ.
func AppendObject(dst, object []byte, members []Member) []byte {
	dst = append(dst, '{')
	start := len(dst)
	comma := func() {
		if len(dst) > start {
			dst = append(dst, ',')
		}
	}
	for o := ObjectOf(object); o.Next(); {
		if !named(members, o.Name) {
			comma()
			dst = append(dst, o.member...)
		}
	}
	for _, m := range members {
		comma()
		dst = append(append(AppendString(dst, m.Name), ':'), m.Value...)
	}
	return append(dst, '}')
}

func named(members []Member, name []byte) bool {
	for _, m := range members {
		if m.Name == string(name) {
			return true
		}
	}
	return false
}

// Unquote returns the characters of a JSON string, half a surrogate pair as U+FFFD,
// and whether literal is one.
func Unquote(literal []byte) (text string, ok bool) {
	s := scanner{text: literal, limit: 1}
	if at(literal, 0) != '"' || s.str(0) != len(literal) {
		return "", false
	}
	return readable(unquote(literal)), true
}

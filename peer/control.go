package peer

import (
	"bytes"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
)

// Control runs f for each notification of method whose token is this one, in the
// reader, past every queue and every Handler: for what must not wait for handlers,
// as progress and flow control. The token is the member of the params with that
// name, a string or an integer; with no name and the zero token, f runs for every
// notification of the method. The names of one method are all the same.
//
// f must not block, call user code, or use the connection except through a
// goroutine of its own. It gets the members of the params, of which the token may be
// left out; they are valid until it returns. Packages that extend the protocol use it; an application has Handlers. A
// notification of the method with another token goes to the Handler if that has
// the method, and is counted as UnknownToken otherwise.
//
// remove takes f away again; it may still be running when that returns. The error is
// ErrToken where there is a function for the same method and token, which the other
// end may have chosen. Control panics where the names of one method differ.
func (c *Conn) Control(method, name string, token codec.ID, f func(params *codec.Object)) (remove func(), err error) {
	return c.controls.add(method, name, token.Key(), f)
}

// controls are the functions that run in the reader, by method. The zero value has
// none. A method stays, once it is there, and so the reader needs no lock to see
// that nothing here is for a notification.
type controls struct {
	mu      sync.Mutex // held to change methods
	methods atomic.Pointer[map[string]*control]
}

// control is what runs for one method.
type control struct {
	name string // of the member that holds the token, "" for none

	mu     sync.Mutex
	tokens map[codec.Key]func(*codec.Object) // under the zero Key where there is none

	// Most notifications have the token of the one before.
	literal []byte
	last    func(*codec.Object) // of literal; nil where that is to be looked for
}

func (s *controls) add(method, name string, token codec.Key, f func(*codec.Object)) (remove func(), err error) {
	m := s.of(method, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.name != name || (name == "") != (token == codec.Key{}):
		panic("peer: Control: method " + method + " has its tokens elsewhere")
	case m.tokens[token] != nil:
		return nil, ErrToken
	}
	m.tokens[token] = f
	return sync.OnceFunc(func() { // later the token may be another's
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.tokens, token)
		m.last = nil
	}), nil
}

// of returns the control of method, which it makes where there is none.
func (s *controls) of(method, name string) *control {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]*control{}
	if old := s.methods.Load(); old != nil {
		if m := (*old)[method]; m != nil {
			return m
		}
		maps.Copy(all, *old)
	}
	m := &control{name: name, tokens: map[codec.Key]func(*codec.Object){}}
	all[method] = m
	s.methods.Store(&all)
	return m
}

// find returns what runs for a notification, or nil, and whether others with its
// method do, or did. What runs gets o.
func (s *controls) find(method, params []byte, o *codec.Object) (f func(*codec.Object), known bool) {
	methods := s.methods.Load()
	if methods == nil {
		return nil, false
	}
	m := (*methods)[string(method)]
	if m == nil {
		return nil, false
	}
	o.Reset(params)
	if m.name == "" {
		return m.get(nil), true
	}
	var token []byte
	before := 0
	for o.Next() {
		if string(o.Name) == m.name { // the first one: what follows is not read twice
			token = o.Value
			break
		}
		before++
	}
	if before > 0 {
		o.Reset(params)
	}
	return m.get(token), true
}

// get returns the function for the token as it is written, nil for none.
func (m *control) get(token []byte) func(*codec.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && bytes.Equal(m.literal, token) {
		return m.last
	}
	key, _ := codec.KeyOf(token)
	f := m.tokens[key]
	if f != nil { // its token is not long
		m.last, m.literal = f, append(m.literal[:0], token...)
	}
	return f
}

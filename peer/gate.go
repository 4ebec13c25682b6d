package peer

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
)

// Opening says what an end takes before the call that opens the session was answered,
// and after the one that closes it. The zero value takes everything at any time. It
// binds the end whose Handler is a Registry, or a Chain over one, that has the opening
// call: that of the others is somebody else's to open.
type Opening struct {
	Call    string   // opens the session by succeeding, once; zero: there is none
	Code    Code     // of the error that calls before it get; zero: InvalidRequest
	Calls   []string // are taken before it all the same
	Notices []string // notifications that are taken before it and after Close; others are refused
	Close   string   // closes the session by succeeding; calls after it get InvalidRequest
}

// session is where the other end is between Opening.Call and Opening.Close.
type session struct {
	gated bool         // the profile has an opening, and it is this end's to give
	state atomic.Int32 // of the sessionStates
}

const (
	sessionShut    = iota // nothing was opened
	sessionOpening        // the opening call runs
	sessionOpen
	sessionClosed
)

// ErrDirection is returned for a call where the profile has the other end alone make
// calls.
var ErrDirection = errors.New("peer: the profile has calls from the dialling end only")

// errEarly is the cause of a notification that came before the session was open, or
// after it was closed.
var errEarly = errors.New("peer: the session is not open")

// refusal is why a call may not be admitted whatever the handler, or nil.
func (c *Conn) refusal(m *codec.Message) *Error {
	p := c.opts.Profile
	if p.OneWay && !c.opts.Accepts {
		return &Error{Code: or(p.OneWayCode, codec.InvalidRequest), Message: "this end takes no calls"}
	}
	for _, name := range p.RequiredMeta {
		if codec.Find(codec.Find(m.Params, metaMember), name) == nil {
			return mismatch{Pointer: "/" + metaMember, Reason: fmt.Sprintf("lacks %q", name)}.object()
		}
	}
	if !c.session.gated {
		return nil
	}
	o := &p.Opening
	switch state := c.session.state.Load(); {
	case string(m.Method) == o.Call:
		if state != sessionShut {
			return &Error{Code: codec.InvalidRequest, Message: "already initialized"}
		}
	case state == sessionClosed:
		return &Error{Code: codec.InvalidRequest, Message: "the session is closed"}
	case state != sessionOpen && !slices.Contains(o.Calls, string(m.Method)):
		return &Error{Code: or(o.Code, codec.InvalidRequest), Message: "not initialized"}
	}
	return nil
}

// takes reports whether a notification may run now.
func (c *Conn) takes(m *codec.Message) bool {
	return !c.session.gated || c.session.state.Load() == sessionOpen || slices.Contains(c.opts.Profile.Opening.Notices, string(m.Method))
}

// begins notes that a call was admitted.
func (c *Conn) begins(r *incoming) {
	if c.session.gated && r.req.Method == c.opts.Profile.Opening.Call {
		c.session.state.Store(sessionOpening)
	}
}

// ends moves the session on, before a call is answered.
func (c *Conn) ends(r *incoming, succeeded bool) {
	if !c.session.gated {
		return
	}
	o := &c.opts.Profile.Opening
	switch r.req.Method {
	case o.Call:
		next := int32(sessionShut)
		if succeeded {
			next = sessionOpen
		}
		c.session.state.CompareAndSwap(sessionOpening, next)
	case o.Close:
		if succeeded {
			c.session.state.CompareAndSwap(sessionOpen, sessionClosed)
		}
	}
}

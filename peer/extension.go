package peer

import (
	"github.com/duetrpc/duet/codec"
)

// Extend has f prepare the call, once that has its id and before it is encoded: for
// packages that extend the protocol, as package stream does. An error of f fails the
// call, which is then not sent. f runs in the caller's goroutine.
func Extend(f func(*Extension) error) CallOption {
	return func(o *callOptions) { o.extensions = append(o.extensions, f) }
}

// Extension is what Extend may add to one call. It is of no use after f returned.
type Extension struct {
	// Conn is the connection the call is made on.
	Conn *Conn

	// ID is the id of the call. No other call of this end has it, so that tokens can
	// be made of it.
	ID int64

	once    *bool // to be set where the call cannot be made again; nil where nobody asks
	add     *additions
	removes []func() // run at the end
}

// Param adds a member to the params of the call, in the place of what the user has
// there. Params that are an array have no place for one: the call fails with
// ErrNoPlace. value is a JSON text and is not changed afterwards.
func (x *Extension) Param(name string, value []byte) {
	x.add.params = append(x.add.params, codec.Member{Name: name, Value: value})
}

// Meta adds a member to params._meta, as Param does to the params.
func (x *Extension) Meta(name string, value []byte) {
	x.add.meta = append(x.add.meta, codec.Member{Name: name, Value: value})
}

// Control is [Conn.Control] until the answer to the call has arrived.
func (x *Extension) Control(method, name string, token codec.ID, f func(params *codec.Object)) error {
	c, id := x.Conn, x.ID
	remove, err := c.Control(method, name, token, func(params *codec.Object) {
		if !c.calls.Has(id) { // and the caller is on its way to take f away
			c.events.add(Event{Kind: UnknownToken, Method: otherMethod})
			return
		}
		f(params)
	})
	if err == nil {
		x.removes = append(x.removes, remove)
	}
	return err
}

// OnEnd has f run when the call is over, in the caller's goroutine, however it ended. f
// reports whether the call could be made again, by a [Client], as far as this extension is
// concerned.
func (x *Extension) OnEnd(f func() (again bool)) {
	x.removes = append(x.removes, func() {
		if !f() && x.once != nil {
			*x.once = true
		}
	})
}

// prepare does what the options of the call say. The updates are nil where it did not
// ask for progress.
func (x *Extension) prepare(o *callOptions) (u *updates, err error) {
	if o.progress != nil {
		u = x.Conn.newUpdates(o.progress)
		if err := u.asks(x); err != nil {
			return nil, err
		}
	}
	for _, f := range o.extensions {
		if err := f(x); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// end takes the functions of Control away, and runs those of OnEnd.
func (x *Extension) end() {
	for _, remove := range x.removes {
		remove()
	}
}

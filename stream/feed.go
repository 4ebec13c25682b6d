package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// Feed is the contract of a call whose caller sends items while the handler runs: its
// name, the type of its params, of an item, and of the result. It is meant to be a
// constant. The same rules hold as for a [Method], in the other direction.
type Feed[In, Item, Out any] string

// Handle registers f as the handler of the method, as [peer.Method.Handle] does. f takes
// the items in its loop; after the last one, or after an error, the loop ends. The error
// is the cause of ctx, an *ItemError, which is answered with -32602 if f returns it, or
// ErrSlowConsumer; the caller has ended its items where there is none. f need not take
// them all. items is used once, by one goroutine, and yields nothing after f has
// returned.
//
// A call that brings no items along is answered with -32602 and does not reach f.
func (m Feed[In, Item, Out]) Handle(r *peer.Registry, f func(ctx context.Context, in In, items iter.Seq2[Item, error]) (Out, error), opts ...Option) {
	if f == nil {
		panic("stream: nil handler registered for method " + strconv.Quote(string(m)))
	}
	o := chosen(opts)
	peer.Method[In, Out](m).Handle(r, func(ctx context.Context, in In) (out Out, err error) {
		t, err := taking[Item](ctx, o)
		if err != nil {
			return out, err
		}
		defer t.close()
		t.inbox.grant(ctx)
		return f(ctx, in, t.all)
	}, o.handle...)
}

// taker is the end of a feed that takes the items.
type taker[Item any] struct {
	ctx    context.Context
	inbox  *inbox
	remove func()
	used   bool
	over   atomic.Bool // the handler has returned
}

func (t *taker[Item]) close() {
	t.over.Store(true)
	t.inbox.finish() // from here on nothing more is reserved
	t.remove()
	t.inbox.conn.Unreserve(t.inbox.reserved.Load())
}

// taking makes the taker of the handler that ctx belongs to.
func taking[Item any](ctx context.Context, o options) (*taker[Item], error) {
	req, ok := peer.RequestFrom(ctx)
	if !ok || req.IsNotification() {
		return nil, errors.New("stream: a notification brings no items")
	}
	offer, _ := offerOf(req.Params, feedName)
	switch {
	case req.Conn.Profile().Progress.Off:
		return nil, errNoPlace
	case offer.token == nil:
		return nil, errNoToken
	}
	n := req.Conn.Reserve(min(o.window.bytes, 4<<10), o.window.bytes)
	if n == 0 {
		return nil, &peer.Error{Code: cmp.Or(req.Conn.Profile().Overloaded, peer.Overloaded), Message: "overloaded"}
	}
	o.window.bytes = n
	bound := o.window // of who has credit there is no more
	if !o.chosen {
		bound.items = mostItems
	}
	t := &taker[Item]{ctx: ctx, inbox: newInbox(&o, bound, func() {})}
	b := t.inbox
	b.reserved.Store(n)
	b.method, b.granted = wantMethod, amount{}
	attempt := b.bind(req.Conn, slices.Clone(offer.token))
	token, _ := codec.ParseID(b.token)
	var err error
	t.remove, err = req.Conn.Control(feedMethod, "token", token, func(params *codec.Object) {
		for params.Next() {
			switch {
			case string(params.Name) == "value":
				b.add(attempt, params.Value)
			case string(params.Name) == "end" && string(params.Value) == "true":
				b.finish()
			}
		}
	})
	if err != nil {
		b.conn.Unreserve(n)
		return nil, &peer.Error{Code: peer.InvalidParams, Message: "invalid params: the token is in use by another stream"}
	}
	return t, nil
}

// all yields the items.
func (t *taker[Item]) all(yield func(Item, error) bool) {
	var none Item
	if t.over.Load() {
		return
	}
	if t.used {
		yield(none, ErrEnded)
		return
	}
	t.used = true
	for {
		text, last := t.inbox.take()
		switch {
		case t.over.Load():
			return
		case t.ctx.Err() != nil:
			yield(none, context.Cause(t.ctx))
			return
		case last:
			if t.inbox.overflowed() {
				yield(none, ErrSlowConsumer)
			}
			return
		case text == nil:
			t.inbox.wait(t.ctx, nil)
			continue
		}
		var item Item
		if err := t.inbox.conn.JSON().Unmarshal(text, &item); err != nil {
			yield(none, &ItemError{Err: fmt.Errorf("%w: %w", errItem, err)})
			return
		}
		if !yield(item, nil) {
			return
		}
		t.inbox.used(t.ctx, text)
	}
}

// Call calls the method at the other end of c and returns at once. Its items go by Send,
// and its result comes from Result, which has to be used, or ctx to end.
func (m Feed[In, Item, Out]) Call(ctx context.Context, c peer.Caller, in In, opts ...Option) *Feeding[Item, Out] {
	f := &Feeding[Item, Out]{wanted: make(chan struct{}), done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	all := append(chosen(opts).call, peer.Extend(f.ask))
	go func() {
		defer func() {
			if f.err != nil {
				f.cancel(fmt.Errorf("%w: %w", ErrEnded, f.err))
			}
			f.cancel(ErrEnded)
			close(f.done) // last: who has the result finds that the call has ended
		}()
		f.err = errGoexit
		defer func() { f.panicked = recover() }()
		f.out, f.err = peer.Method[In, Out](m).Call(f.ctx, c, in, all...)
	}()
	return f
}

// Feeding is a call whose items leave before its result arrives. Its methods may be
// used concurrently.
type Feeding[Item, Out any] struct {
	ctx    context.Context // ends with the call
	cancel context.CancelCauseFunc
	wanted chan struct{} // closed when the handler is there to take items; the sender is, too, then
	asked  atomic.Bool   // an attempt at the call is not over, or was wanted
	sender *sender       // of the last attempt; read when wanted is closed, and so stays
	token  []byte

	done chan struct{} // closed when what follows is set
	ended[Out]
}

// ask makes the call offer items.
func (f *Feeding[Item, Out]) ask(x *peer.Extension) error {
	if x.Conn.Profile().Progress.Off {
		return fmt.Errorf("%w: the profile has none for items", peer.ErrNoPlace)
	}
	if !f.asked.CompareAndSwap(false, true) {
		return errAgain
	}
	id := codec.NumberID(x.ID)
	f.token = id.AppendTo(nil)
	s := &sender{
		conn: x.Conn, method: feedMethod, form: formOf("token", f.token, false),
		limits: true, wake: make(chan struct{}, 1), wanted: f.wanted,
	}
	f.sender = s
	x.OnEnd(func() bool {
		again := s.unwanted() // and so nothing was sent
		if again {
			f.asked.Store(false)
		}
		return again
	})
	x.Meta(feedName, object("token", f.token))
	return x.Control(wantMethod, "token", id, s.credit)
}

// Send sends one item, as soon as the handler has given credit for it. The error is
// ErrEnded once the call was answered, or End was called; the error of the context of the
// call; an *ItemError; or why the connection does not take it. Then the item was not
// sent.
func (f *Feeding[Item, Out]) Send(item Item) error {
	if err := f.await(); err != nil {
		return err
	}
	return f.sender.send(f.ctx, item)
}

// await waits until the handler takes items.
func (f *Feeding[Item, Out]) await() error {
	select {
	case <-f.wanted:
	case <-f.ctx.Done():
	}
	return context.Cause(f.ctx) // nil before its end
}

// End tells the handler that no more items come. After the first time it does nothing.
func (f *Feeding[Item, Out]) End() error {
	if err := f.await(); err != nil {
		return err
	}
	if !f.sender.end() {
		return nil
	}
	params := object("token", f.token, codec.Member{Name: "end", Value: []byte("true")})
	e, err := f.sender.conn.Encode(feedMethod, nil, json.RawMessage(params), nil)
	if err != nil {
		return err
	}
	return e.Send(f.ctx)
}

// Result ends the items, waits for the end of the call and returns how it went.
func (f *Feeding[Item, Out]) Result() (Out, error) {
	_ = f.End() // where it cannot be told, the call fails too
	<-f.done
	f.raise()
	return f.out, f.err
}

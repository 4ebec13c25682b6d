package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// Method is the contract of a call whose handler sends items: its name, the type of
// its params, of an item, and of the result. It is meant to be a constant. On the wire
// it is a call as any other, whose items are progress; see docs/streams.md.
type Method[In, Item, Out any] string

// Handle registers f as the handler of the method, as [peer.Method.Handle] does. f may
// use send from several goroutines; it sends one item after the other, each when there is
// credit for it, and returns an error where it was not sent: the cause of ctx, an
// *ItemError, ErrEnded after f has returned, or why the connection does not take it.
//
// A call that says nowhere where its items are to go is answered with -32602 and does
// not reach f, unless the method is Optional.
func (m Method[In, Item, Out]) Handle(r *peer.Registry, f func(ctx context.Context, in In, send func(Item) error) (Out, error), opts ...Option) {
	if f == nil {
		panic("stream: nil handler registered for method " + strconv.Quote(string(m)))
	}
	o := chosen(opts)
	boxes := boxesOf[Item]()
	peer.Method[In, Out](m).Handle(r, func(ctx context.Context, in In) (out Out, err error) {
		s, err := answering(ctx)
		if o.optional && (err == errNoToken || err == errNoPlace) {
			return f(ctx, in, nil)
		}
		if err != nil {
			return out, err
		}
		defer s.close()
		return f(ctx, in, func(item Item) error {
			box := boxes.put(item)
			defer boxes.free(box)
			return s.send(ctx, box)
		})
	}, o.handle...)
}

// handlerSender is the sender of a handler.
type handlerSender struct {
	sender
	remove func()
}

// answering makes the sender of the handler that ctx belongs to.
func answering(ctx context.Context) (*handlerSender, error) {
	req, ok := peer.RequestFrom(ctx)
	if !ok || req.IsNotification() {
		return nil, errors.New("stream: nobody waits for the answer to a notification, nor for items before it")
	}
	d := &req.Conn.Profile().Progress
	method, name := d.Notification()
	o, offered := offerOf(req.Params, offerName)
	if o.token == nil && (offered || !d.Flat) {
		_, places := d.Places()
		o.token = peer.FindToken(req.Params, places)
	}
	switch {
	case d.Off:
		return nil, errNoPlace
	case o.token == nil:
		return nil, errNoToken
	}
	s := &handlerSender{sender: sender{
		conn: req.Conn, method: method, form: formOf(name, o.token, d.Flat),
		granted: o.window, window: o.window, limits: o.limits, wake: make(chan struct{}, 1),
	}}
	token, _ := codec.ParseID(o.token)
	var err error
	if s.remove, err = req.Conn.Control(creditMethod, "token", token, s.credit); err != nil {
		return nil, &peer.Error{Code: peer.InvalidParams, Message: "invalid params: the token is in use by another stream"}
	}
	return s, nil
}

func (s *handlerSender) close() {
	s.end()
	s.remove()
}

// formOf is the form of items that are progress.
func formOf(name string, token []byte, flat bool) form {
	head := append(codec.AppendString([]byte{'{'}, name), ':')
	head = append(head, token...)
	if !flat {
		return form{head: append(head, `,"value":`...), tail: []byte("}")}
	}
	return form{
		head:  append(head, `,"progress":`...),
		count: append(codec.AppendString([]byte(`,"_meta":{`), offerName), ':'),
		tail:  []byte("}}"),
	}
}

// Call calls the method at the other end of c and returns at once. Its items are taken
// from All, its result from Result; one of the two has to be used, or ctx to end.
// Every failure shows there, those that keep the call from being sent too.
func (m Method[In, Item, Out]) Call(ctx context.Context, c peer.Caller, in In, opts ...Option) *Stream[Item, Out] {
	o := chosen(opts)
	s := &Stream[Item, Out]{done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.inbox = newInbox(&o, o.buffer, func() { go s.fail(ErrSlowConsumer) }) // a context is not the reader's to end
	s.inbox.method = creditMethod
	all := append(slices.Clone(o.call), peer.Extend(s.ask))
	go func() {
		defer s.finish()
		s.err = errGoexit
		defer func() { s.panicked = recover() }()
		s.out, s.err = peer.Method[In, Out](m).Call(s.ctx, c, in, all...)
	}()
	return s
}

// Stream is a call whose items arrive before its result. Its methods are for one
// goroutine.
type Stream[Item, Out any] struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	inbox  *inbox
	used   bool

	mu      sync.Mutex
	failure error // why this end gave the call up

	done chan struct{} // closed when what follows is set
	ended[Out]
}

// ask makes the call ask for items.
func (s *Stream[Item, Out]) ask(x *peer.Extension) error {
	d := &x.Conn.Profile().Progress
	if d.Off {
		return fmt.Errorf("%w: the profile has none for items", peer.ErrNoPlace)
	}
	id := codec.NumberID(x.ID)
	token := id.AppendTo(nil)
	b := s.inbox
	attempt := b.bind(x.Conn, token)
	if attempt == 0 {
		return errAgain
	}
	x.OnEnd(b.unbind)
	x.Meta(offerName, object("token", token, b.window.members()...))
	if progress, items := d.Places(); items[0] != progress[0] { // which that of progress may have
		x.At(items[0], token)
	}
	method, name := d.Notification()
	flat := d.Flat
	return x.Control(method, name, id, func(params *codec.Object) {
		if item := itemOf(params, flat); item != nil {
			b.add(attempt, item)
		}
	})
}

// fail gives the call up. The first reason counts.
func (s *Stream[Item, Out]) fail(err error) {
	s.mu.Lock()
	if s.failure == nil {
		s.failure = err
	}
	s.mu.Unlock()
	reason := err.Error()
	if errors.As(err, new(*ItemError)) { // the text of a decoder is nobody else's
		reason = "stream: an item could not be read"
	}
	s.cancel(fmt.Errorf("%w: %w", err, &peer.CancelError{Reason: reason}))
}

func (s *Stream[Item, Out]) finish() {
	s.inbox.finish()
	s.cancel(nil)
	close(s.done)
}

// outcome waits for the end of the call.
func (s *Stream[Item, Out]) outcome() (Out, error) {
	<-s.done
	s.raise()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failure == ErrStopped && s.err == nil: // too late: there is a result
	case s.failure != nil:
		return s.out, s.failure
	case s.inbox.overflowed(): // and fail is on its way
		return s.out, ErrSlowConsumer
	}
	return s.out, s.err
}

// All yields the items as they come, in order, and after them the error of the call if
// there is one. Leaving the loop cancels the call. All is used once, and not after
// Result.
func (s *Stream[Item, Out]) All() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		if s.used {
			yield(none, ErrEnded)
			return
		}
		ended := false
		defer func() {
			if !ended { // left, or the body of the loop panicked
				s.fail(ErrStopped)
			}
		}()
		boxes := boxesOf[Item]()
		box := boxes.put(none)
		for text := range s.texts() {
			if err := s.inbox.conn.JSON().Unmarshal(text, box); err != nil {
				s.fail(&ItemError{Err: err})
				break
			}
			item := *box
			box = boxes.empty(box)
			if !yield(item, nil) {
				return
			}
		}
		ended = true
		if _, err := s.outcome(); err != nil {
			yield(none, err)
		}
	}
}

// Result waits for the end of the call and returns how it went. Items that nobody took
// are dropped as they come.
func (s *Stream[Item, Out]) Result() (Out, error) {
	for range s.texts() {
	}
	return s.outcome()
}

// texts yields the JSON of the items, each valid until the next, and gives credit for
// them. The second time there are none.
func (s *Stream[Item, Out]) texts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if s.used {
			return
		}
		s.used = true
		for {
			text, last := s.inbox.take()
			switch {
			case last:
				return
			case text == nil:
				if !s.inbox.wait(s.ctx, s.done) {
					<-s.done
				}
			case !yield(text):
				return
			default:
				s.inbox.used(s.ctx, text)
			}
		}
	}
}

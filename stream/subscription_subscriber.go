package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

// What waits of one subscription unless Buffer says more, and of all those whose ids
// are still on their way.
const (
	mostWaiting      = 20_000
	mostWaitingBytes = 8 << 20
)

// keeping returns what opts say of a subscription. A window it has no use for.
func keeping(opts []Option) options {
	return chosen(append([]Option{Window(1, 1), Buffer(mostWaiting, mostWaitingBytes)}, opts...))
}

// unsubscribeWait is how long an unsubscribe waits for its answer.
const unsubscribeWait = 10 * time.Second

// Subscriber gets what the other end of a connection publishes in one namespace, past
// every queue and Handler, and passes it on by the id. It is made with NewSubscriber,
// may be used concurrently, and lasts as long as the connection.
type Subscriber struct {
	conn      *peer.Conn
	namespace string

	mu      sync.Mutex
	open    map[codec.Key]*intake
	asking  int                   // calls that may bring an id
	early   map[codec.Key]*intake // of ids that are not known yet, while asking
	held    amount                // in early
	lost    bool                  // while asking, something found no room in early
	dropped int64
}

// NewSubscriber returns the one Subscriber of the connection for the namespace, for
// instance "eth". The error is [peer.ErrToken] where it has one.
func NewSubscriber(conn *peer.Conn, namespace string) (*Subscriber, error) {
	s := &Subscriber{conn: conn, namespace: namespace, open: map[codec.Key]*intake{}, early: map[codec.Key]*intake{}}
	if _, err := conn.Control(namespace+"_subscription", "", codec.ID{}, s.push); err != nil {
		return nil, fmt.Errorf("stream: subscriber for %q: %w", namespace, err)
	}
	return s, nil
}

// Dropped counts notifications that belonged to no subscription, or had neither a result
// nor an error. What comes while Subscribe waits for an id is kept, up to 20,000 items
// and 8 MiB in all, and counts once no call is left that it may belong to.
func (s *Subscriber) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// push takes one notification. The reader calls it.
func (s *Subscriber) push(params *codec.Object) {
	var key codec.Key
	var result, failure []byte
	for params.Next() {
		switch string(params.Name) {
		case "subscription":
			key, _ = codec.KeyOf(params.Value)
		case "result":
			result = params.Value
		case "error":
			failure = params.Value
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	says := result != nil || failure != nil
	in := s.open[key]
	if in == nil && says {
		in = s.earlier(key, amount{1, int64(len(params.Text()))})
	}
	switch {
	case in == nil || !says:
		s.dropped++
	case result != nil:
		in.add(0, result) // the call is made once
	default:
		in.fail(&peer.CallError{Method: s.namespace + "_subscribe", Sent: pending.Sent, Err: errorOf(failure)})
		delete(s.open, key)
	}
}

// earlier returns the intake of an id that is not known yet, or nil where nobody waits
// for one, or there is no room. s.mu is held.
func (s *Subscriber) earlier(key codec.Key, size amount) *intake {
	if s.asking == 0 || key == (codec.Key{}) {
		return nil
	}
	held := s.held.plus(size)
	if !(amount{mostWaiting, mostWaitingBytes}).atLeast(held) {
		s.lost = true
		return nil
	}
	in := s.early[key]
	if in == nil {
		o := keeping(nil)
		in = s.newIntake(&o)
		s.early[key] = in
	}
	s.held, in.early = held, in.early.plus(size)
	return in
}

// subscribe makes the call. That goes on where ctx ends before the answer: the id in it
// is needed to unsubscribe.
func (s *Subscriber) subscribe(ctx context.Context, params json.RawMessage, o *options) (*intake, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("stream: subscribe: %w", err)
	}
	s.mu.Lock()
	s.asking++
	s.mu.Unlock()
	type answer struct {
		in       *intake
		err      error
		panicked any
	}
	answers := make(chan answer)
	go func() {
		var id json.RawMessage
		err := errGoexit
		defer func() { // Options.Outgoing is the user's, and may do anything
			panicked := recover()
			in, err := s.answered(id, err, o)
			select {
			case answers <- answer{in, err, panicked}:
			case <-ctx.Done():
				if in != nil {
					s.end(in)
				}
			}
		}()
		err = s.conn.Call(context.WithoutCancel(ctx), s.namespace+"_subscribe", params, &id, o.call...)
	}()
	select {
	case a := <-answers:
		if a.panicked != nil {
			panic(a.panicked)
		}
		return a.in, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("stream: subscribe: %w", ctx.Err())
	}
}

// answered makes the intake of the id that a call brought, if it did. After the last call
// in flight nobody knows what to do with what came early.
func (s *Subscriber) answered(id json.RawMessage, err error, o *options) (*intake, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if s.asking--; s.asking == 0 {
			s.dropped += s.held.items
			s.held, s.lost = amount{}, false
			clear(s.early)
		}
	}()
	key, ok := codec.KeyOf(id)
	switch {
	case err != nil:
		return nil, err
	case !ok || s.open[key] != nil:
		return nil, fmt.Errorf("stream: the answer to %s_subscribe is no id, or one in use", s.namespace)
	}
	in := s.early[key]
	if in == nil {
		in = s.newIntake(o)
	}
	delete(s.early, key)
	s.held = s.held.minus(in.early)
	in.id, in.key = id, key
	in.mu.Lock()
	defer in.mu.Unlock()
	in.bound = o.buffer
	if s.lost { // and it may have been of this one
		in.full, in.last = true, true
	}
	if in.failure == nil {
		s.open[key] = in
	}
	if in.full {
		s.end(in)
	}
	return in, nil
}

// end ends a subscription at both ends, the first time. It does not wait.
func (s *Subscriber) end(in *intake) {
	if in.ending.CompareAndSwap(false, true) {
		go s.unsubscribe(in)
	}
}

// unsubscribe makes the call where the publisher has not ended it before. The id stays
// until the answer is there, so that what comes meanwhile is not taken for early.
func (s *Subscriber) unsubscribe(in *intake) {
	defer close(in.ended)
	in.finish()
	s.mu.Lock()
	live := s.open[in.key] == in
	s.mu.Unlock()
	if !live {
		return
	}
	ctx, cancel := context.WithTimeout(s.conn.Context(), unsubscribeWait)
	defer cancel()
	in.err = errGoexit
	defer func() {
		in.panicked = recover()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[in.key] == in {
			delete(s.open, in.key)
		}
	}()
	in.err = s.conn.Call(ctx, s.namespace+"_unsubscribe", json.RawMessage("["+string(in.id)+"]"), nil)
}

// intake is the end of one subscription that its items arrive at.
type intake struct {
	*inbox
	id      json.RawMessage // nil until it is known
	key     codec.Key       // of id
	early   amount          // what came before id; guarded by Subscriber.mu
	failure error           // of the publisher; guarded by inbox.mu

	ending   atomic.Bool
	ended    chan struct{} // closed when what follows is set
	err      error         // of the call that unsubscribed
	panicked any           // what user code panicked with there, or nil
}

func (s *Subscriber) newIntake(o *options) *intake {
	in := &intake{ended: make(chan struct{})}
	in.inbox = newInbox(o, o.buffer, func() { s.end(in) }) // not while early, whose bound is first
	return in
}

// fail ends it with the error of the publisher.
func (in *intake) fail(err error) {
	in.mu.Lock()
	if !in.last {
		in.failure, in.last = err, true
	}
	in.mu.Unlock()
	in.signal()
}

// took notes that an item was taken out. Nobody waits for credit, so none is due.
func (in *intake) took(item []byte) {
	in.taken = in.taken.plus(amount{1, int64(len(item))})
	in.granted = in.taken.plus(in.window)
	in.mu.Lock()
	in.tell()
	in.mu.Unlock()
}

// outcome is why no more comes, nil where that is Unsubscribe.
func (in *intake) outcome() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.full {
		return ErrSlowConsumer
	}
	return in.failure
}

// errorOf reads an error object. What is none is the data of one.
func errorOf(text []byte) *peer.Error {
	var e struct {
		Code    *peer.Code
		Message string
		Data    json.RawMessage
	}
	if json.Unmarshal(text, &e) != nil || e.Code == nil {
		return &peer.Error{Code: peer.InternalError, Message: "the subscription failed", Data: bytes.Clone(text)}
	}
	return &peer.Error{Code: *e.Code, Message: e.Message, Data: e.Data}
}

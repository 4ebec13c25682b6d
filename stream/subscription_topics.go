package stream

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// ErrUnsubscribed is the cause of a publisher's context when its subscriber wants no
// more.
var ErrUnsubscribed = errors.New("stream: unsubscribed")

// Topics are what the other ends of connections may subscribe to. The zero value with a
// Namespace is ready, and is not copied. Topics are added with [Topic.Handle] before
// Register; then it may be used concurrently, and by any number of connections.
//
// A subscription ends by the connection it was made on, and no other one, and with it.
type Topics struct {
	// Namespace begins the names of the methods: "eth" makes eth_subscribe and
	// eth_unsubscribe, and the notification eth_subscription.
	Namespace string

	// PerConn is how many subscriptions one connection may have at a time; zero means
	// 1,024. One counts until its function has returned. Further ones are answered with
	// the code of the profile for what is over a bound, -32010.
	PerConn int

	// Logger gets the errors and panics behind a -32603. Nil means none.
	Logger *slog.Logger

	topics     peer.Registry
	registered bool

	mu    sync.Mutex
	conns map[*peer.Conn]map[string]*publication // by id, until their functions have returned; none is empty
}

// Register adds the two methods to r. It panics as [peer.Registry.Handle] does, and
// without a Namespace.
func (t *Topics) Register(r *peer.Registry) {
	if t.Namespace == "" {
		panic("stream: Topics without a Namespace")
	}
	t.registered = true
	r.Handle(t.Namespace+"_subscribe", peer.HandlerFunc(t.subscribe), peer.Doc("Subscribes to the topic with the name and the arguments that params list. The result is an id."))
	r.Handle(t.Namespace+"_unsubscribe", peer.HandlerFunc(t.unsubscribe), peer.Doc("Ends the subscription with the id that params list. The result tells whether there is one."))
}

func (t *Topics) subscribe(ctx context.Context, req *peer.Request) (any, error) {
	name, args, err := ofArray(req.Params)
	if err != nil {
		return nil, err
	}
	id, err := t.topics.ServeRPC(ctx, &peer.Request{Method: name, ID: req.ID, Params: args, Conn: req.Conn})
	if errors.Is(err, &peer.Error{Code: peer.MethodNotFound}) {
		return nil, invalid("no such topic")
	}
	return id, err
}

func (t *Topics) unsubscribe(_ context.Context, req *peer.Request) (any, error) {
	id, rest, err := ofArray(req.Params)
	switch {
	case err != nil:
		return nil, err
	case string(rest) != "[]":
		return nil, invalid("want one id")
	}
	t.mu.Lock()
	p := t.conns[req.Conn][id]
	live := p != nil && p.ctx.Err() == nil
	if live {
		p.end(ErrUnsubscribed)
	}
	t.mu.Unlock()
	if live {
		p.settle() // before the answer
	}
	return live, nil
}

// open makes a subscription of the call whose handler ctx belongs to, and returns its
// id. It starts when the answer with that is queued.
func (t *Topics) open(ctx context.Context, topic string, run func(context.Context, *publication) error) (string, error) {
	req, ok := peer.RequestFrom(ctx)
	if !ok || req.IsNotification() {
		return "", errors.New("stream: nobody waits for the id of a subscription")
	}
	p := &publication{topic: topic, id: newID(), method: t.Namespace + "_subscription", conn: req.Conn}
	p.ctx, p.end = context.WithCancelCause(req.Conn.Context())
	if !t.add(p) {
		p.end(ErrEnded)
		return "", &peer.Error{Code: cmp.Or(p.conn.Profile().Overloaded, peer.Overloaded), Message: "too many subscriptions"}
	}
	if !peer.Answered(ctx, func(err error) {
		if err != nil {
			t.remove(p)
			return
		}
		go t.publish(p, run)
	}) {
		t.remove(p)
		return "", errors.New("stream: the subscription was answered before it was made")
	}
	return p.id, nil
}

// newID returns an id that nobody can guess, in the form of a quantity of Ethereum.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "0x" + strings.TrimLeft(hex.EncodeToString(b[:]), "0")
}

// add reports whether there is a place for p, which it then has.
func (t *Topics) add(p *publication) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.conns[p.conn]
	if len(all) >= cmp.Or(t.PerConn, 1024) {
		return false
	}
	if all == nil {
		all = map[string]*publication{}
		if t.conns == nil {
			t.conns = map[*peer.Conn]map[string]*publication{}
		}
		t.conns[p.conn] = all
	}
	all[p.id] = p
	return true
}

// remove gives the place of p back.
func (t *Topics) remove(p *publication) {
	p.end(ErrEnded)
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.conns[p.conn]
	if delete(all, p.id); len(all) == 0 {
		delete(t.conns, p.conn)
	}
}

// publish runs the function of a topic for one subscription.
func (t *Topics) publish(p *publication, run func(context.Context, *publication) error) {
	defer t.remove(p)
	ctx, returned := context.WithCancelCause(p.ctx)
	err := errGone
	defer func() {
		v := recover()
		if v != nil {
			err = fmt.Errorf("stream: panic: %v\n%s", v, debug.Stack())
		}
		returned(ErrEnded)
		p.settle()
		if err != nil && (p.fail(err) || v != nil) && t.Logger != nil {
			t.Logger.Error("duet: topic failed", slog.String("topic", p.topic), slog.Any("error", forLog(err)))
		}
	}()
	err = run(ctx, p)
}

// errGone is the error of a function that left its goroutine (runtime.Goexit).
var errGone = errors.New("stream: the function of the topic did not return")

// publication is one subscription, at the end that publishes.
type publication struct {
	topic, id, method string
	conn              *peer.Conn
	ctx               context.Context // ends with it
	end               context.CancelCauseFunc
	leaving           sync.RWMutex // held to read while something is on its way
}

// push are the params of a notification with an item.
type push[Item any] struct {
	Subscription string `json:"subscription"`
	Result       Item   `json:"result"`
}

// send sends a notification, unless ctx has ended.
func (p *publication) send(ctx context.Context, params any) error {
	p.leaving.RLock()
	defer p.leaving.RUnlock()
	err := p.conn.Notify(ctx, p.method, params)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return unsent{err}
}

// settle waits for what is on its way.
func (p *publication) settle() {
	p.leaving.Lock()
	defer p.leaving.Unlock()
}

// fail tells the subscriber that the publisher failed. It reports whether it told less
// than there is to tell.
func (p *publication) fail(err error) (hidden bool) {
	var e *peer.Error
	if !errors.As(err, new(*peer.CallError)) && errors.As(err, &e) && p.sendError(e) == nil {
		return false
	}
	return p.sendError(&peer.Error{Code: peer.InternalError, Message: "internal error"}) == nil
}

func (p *publication) sendError(e *peer.Error) error {
	members := []codec.Member{
		{Name: "code", Value: strconv.AppendInt(nil, int64(e.Code), 10)},
		{Name: "message", Value: codec.AppendString(nil, e.Message)},
	}
	if e.Data != nil {
		members = append(members, codec.Member{Name: "data", Value: e.Data})
	}
	return p.send(p.ctx, json.RawMessage(codec.AppendObject(nil, nil, []codec.Member{
		{Name: "subscription", Value: codec.AppendString(nil, p.id)},
		{Name: "error", Value: codec.AppendObject(nil, nil, members)},
	})))
}

// unsent is why an item was not sent. Its text may quote the item.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// forLog is err as it may be logged.
func forLog(err error) error {
	if errors.As(err, new(unsent)) {
		return errors.New("stream: an item was not sent")
	}
	return err
}

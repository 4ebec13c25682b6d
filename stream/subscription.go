package stream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// Topic is the contract of a subscription as nodes of Ethereum have it: its name, the
// type of its arguments, and of an item. It is meant to be a constant.
//
//	const Heads = stream.Topic[struct{}, Header]("newHeads")
//
//	-> {"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}
//	<- {"jsonrpc":"2.0","id":1,"result":"0x9ce59a13059e417087c02d3236a0b1cc"}
//	<- {"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x9ce5…","result":{…}}}
//	-> {"jsonrpc":"2.0","id":2,"method":"eth_unsubscribe","params":["0x9ce59a13059e417087c02d3236a0b1cc"]}
//	<- {"jsonrpc":"2.0","id":2,"result":true}
//
// The arguments are positional. In is a struct, whose exported fields they are, or a
// slice. Fields at the end that its JSON leaves out, as omitzero has it, are not sent.
//
// Items are notifications as any other, without credit; see [Method] for that. The profile
// has to allow params that are an array.
type Topic[In, Item any] string

// Handle makes f publish the topic to each of its subscribers, in a goroutine of its own
// that starts once the answer with the id is queued. Missing arguments are zero; what
// does not fit is answered with -32602, with a pointer that counts from the first
// argument, and does not reach f.
//
// ctx has the values of the connection. It ends with ErrUnsubscribed, or with the cause
// the connection ended with. f may use send from several goroutines; it waits while the
// queue of the connection is full, and returns an error where an item was not sent: the
// cause of ctx, ErrEnded after f has returned, or that of [peer.Conn.Notify].
//
// When f returns the subscription is over. The subscriber is told of an error: of a
// *peer.Error as it is, of any other, and of a panic, as of a bare -32603.
//
// It panics as [peer.Method.Handle] does, and after t was registered.
func (n Topic[In, Item]) Handle(t *Topics, f func(ctx context.Context, in In, send func(Item) error) error) {
	switch {
	case f == nil:
		panic("stream: nil function for topic " + strconv.Quote(string(n)))
	case t.registered:
		panic("stream: topic " + strconv.Quote(string(n)) + " after Register")
	}
	var opts []peer.HandleOption
	if reflect.TypeFor[In]().Kind() == reflect.Struct {
		opts = append(opts, peer.Positional())
	}
	peer.Method[In, string](n).Handle(&t.topics, func(ctx context.Context, in In) (string, error) {
		return t.open(ctx, string(n), func(ctx context.Context, p *publication) error {
			return f(ctx, in, func(item Item) error { return p.send(ctx, &push[Item]{p.id, item}) })
		})
	}, opts...)
}

// Subscribe asks the other end of the connection of s for the topic. ctx bounds the
// wait for the answer and nothing after it; where it ends first, the subscription that
// comes of it all the same is given up. Of the options Calling and Buffer count; without
// the latter 20,000 items and 8 MiB of their JSON may wait. The error is that of
// [peer.Conn.Call], of ctx, or of arguments that have no such form.
func (n Topic[In, Item]) Subscribe(ctx context.Context, s *Subscriber, in In, opts ...Option) (*Subscription[Item], error) {
	o := keeping(opts)
	text, err := s.conn.JSON().Marshal(nil, in)
	if err != nil {
		return nil, fmt.Errorf("stream: arguments of topic %q: %w", string(n), err)
	}
	params, err := asArray(string(n), text, argumentNames(reflect.TypeFor[In]()))
	if err != nil {
		return nil, err
	}
	got, err := s.subscribe(ctx, params, &o)
	if err != nil {
		return nil, err
	}
	return &Subscription[Item]{in: got, s: s}, nil
}

// Subscription is a topic that this end follows. Save for All its methods may be used
// concurrently.
type Subscription[Item any] struct {
	s    *Subscriber
	in   *intake
	used bool
}

// ID is the id the other end gave it, without quotes.
func (s *Subscription[Item]) ID() string {
	if text, ok := codec.Unquote(s.in.id); ok {
		return text
	}
	return string(s.in.id)
}

// Unsubscribe ends the subscription at both ends, and waits at most 10 s for the other
// one's answer. Items that have come are still yielded. Only the first time does
// something, and the error is always the same: that of the call, nil where the
// publisher has ended it already. In the handler of a notification use it in another
// goroutine, since answers wait for notifications before them.
func (s *Subscription[Item]) Unsubscribe() error {
	s.s.end(s.in)
	<-s.in.ended
	if s.in.panicked != nil {
		panic(s.in.panicked)
	}
	return s.in.err
}

// All yields the items as they come, in order. Leaving the loop unsubscribes, without
// waiting for the answer. After the items it yields why no more come, unless that is
// Unsubscribe:
//
//   - a *peer.CallError with the *peer.Error of the publisher; of its end without an
//     error nobody is told;
//   - an error with the cause the connection ended with;
//   - ErrSlowConsumer: more items waited than Buffer allows; it has unsubscribed;
//   - an *ItemError: an item was none of this type; it has unsubscribed.
//
// All is used once, by one goroutine.
func (s *Subscription[Item]) All() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		if s.used {
			yield(none, ErrEnded)
			return
		}
		s.used = true
		defer s.s.end(s.in) // does nothing where it is over
		for ctx := s.s.conn.Context(); ; {
			ended := ctx.Err() != nil // before looking: nothing comes after it
			text, last := s.in.take()
			switch {
			case text != nil:
				var item Item
				if err := s.s.conn.JSON().Unmarshal(text, &item); err != nil {
					yield(none, &ItemError{Err: err})
					return
				}
				s.in.took(text)
				if !yield(item, nil) {
					return
				}
			case last || ended:
				err := s.in.outcome()
				if !last {
					err = fmt.Errorf("stream: the connection ended: %w", context.Cause(ctx))
				}
				if err != nil {
					yield(none, err)
				}
				return
			default:
				s.in.wait(ctx, nil)
			}
		}
	}
}

// asArray writes the name and the arguments as params. text is the JSON of the latter:
// the members of an object, the elements of an array, or null for none. Members that
// have names must come in the order of those, without a gap.
func asArray(name string, text []byte, names []string) (json.RawMessage, error) {
	params := codec.AppendString([]byte{'['}, name)
	switch text = bytes.TrimSpace(text); {
	case bytes.HasPrefix(text, []byte{'['}):
		text = bytes.TrimSpace(text[1:])
		if !bytes.HasPrefix(text, []byte{']'}) {
			params = append(params, ',')
		}
		return append(params, text...), nil
	case !bytes.HasPrefix(text, []byte{'{'}) && string(text) != "null":
		return nil, fmt.Errorf("%w: arguments of topic %q begin with %.1q", peer.ErrParams, name, text)
	}
	i := 0
	for o := codec.ObjectOf(text); o.Next(); i++ {
		if names != nil && (i >= len(names) || string(o.Name) != names[i]) {
			return nil, fmt.Errorf("%w: arguments of topic %q: one before %q is left out", peer.ErrParams, name, o.Name)
		}
		params = append(append(params, ','), o.Value...)
	}
	return append(params, ']'), nil
}

// argumentNames are the JSON names of the fields of a struct, in order; nil for any other
// type.
func argumentNames(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && f.Tag.Get("json") != "-" {
			names = append(names, cmp.Or(tag, f.Name))
		}
	}
	return names
}

// ofArray takes params apart that begin with a string: the name before arguments, or an
// id.
func ofArray(params json.RawMessage) (first string, rest json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(params))
	open, _ := d.Token()
	if open != json.Delim('[') || d.Decode(&first) != nil {
		return "", nil, invalid("want an array that begins with a string")
	}
	rest = bytes.TrimLeft(params[d.InputOffset():], ", \t\r\n")
	return first, append([]byte{'['}, rest...), nil
}

func invalid(why string) error {
	return &peer.Error{Code: peer.InvalidParams, Message: "invalid params: " + why}
}

package stream

import (
	"strconv"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// The names on the wire; docs/streams.md has the whole of it. Which end makes a token
// decides the method that goes with it, so that tokens of both ends never meet.
const (
	offerName    = "io.github.duetrpc/stream" // in params._meta: the caller takes items; in an item's, where the profile is flat
	feedName     = "io.github.duetrpc/feed"   // in params._meta: the caller has items
	creditMethod = "$/stream/credit"          // from the caller, for items of the handler
	feedMethod   = "$/stream/feed"            // items of the caller
	wantMethod   = "$/stream/want"            // from the handler, for those
)

// amount counts items and the bytes of their JSON.
type amount struct{ items, bytes int64 }

func (a amount) plus(b amount) amount  { return amount{a.items + b.items, a.bytes + b.bytes} }
func (a amount) minus(b amount) amount { return amount{a.items - b.items, a.bytes - b.bytes} }

// atLeast reports whether neither of a is less than that of b.
func (a amount) atLeast(b amount) bool { return a.items >= b.items && a.bytes >= b.bytes }

// amountOf reads the members items and bytes of an object. It reports whether both
// are numbers that count something.
func amountOf(object *codec.Object) (a amount, ok bool) {
	var items, bytes bool
	for object.Next() {
		switch string(object.Name) {
		case "items":
			a.items, items = count(object.Value)
		case "bytes":
			a.bytes, bytes = count(object.Value)
		}
	}
	return a, items && bytes
}

// count reads an integer from 0 to 2^53.
func count(literal []byte) (int64, bool) {
	id, err := codec.ParseID(literal)
	if err != nil {
		return 0, false
	}
	n, ok := id.Int64()
	return n, ok && 0 <= n && n <= 1<<53
}

// members are how a is written.
func (a amount) members() []codec.Member {
	return []codec.Member{
		{Name: "items", Value: strconv.AppendInt(nil, a.items, 10)},
		{Name: "bytes", Value: strconv.AppendInt(nil, a.bytes, 10)},
	}
}

// object writes an object with the token and others.
func object(name string, token []byte, others ...codec.Member) []byte {
	return codec.AppendObject(nil, nil, append([]codec.Member{{Name: name, Value: token}}, others...))
}

// offer is what params._meta says about one direction.
type offer struct {
	token  []byte
	window amount
	limits bool // there is a window
}

// offerOf reads the offer under name, if there is one.
func offerOf(params []byte, name string) (o offer, ok bool) {
	text := codec.Find(codec.Find(params, "_meta"), name)
	if len(text) == 0 || text[0] != '{' {
		return o, false
	}
	o.token = peer.FindToken(text, []string{"/token"})
	object := codec.ObjectOf(text)
	o.window, o.limits = amountOf(&object)
	return o, true
}

package peer

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/duetrpc/duet/codec"
)

// Progress is how far a call is.
type Progress struct {
	Done    float64 // grows from one to the next; in a report, 0 is one more than before
	Total   float64 // what Done will be in the end; 0 where that is not known
	Message string
}

// ProgressDialect says how a handler tells its caller how far it is. The zero value
// is the notification "$/progress" with {"token": t, "value": {"progress": n,
// "total": n, "message": "text"}}, for the token in params._meta.progressToken. Items
// of a stream travel by the same notification, as {"token": t, "value": item}, and
// where it is Flat in its _meta; see package stream.
type ProgressDialect struct {
	Off      bool     // there is none
	Method   string   // zero: "$/progress"
	Token    string   // the member that holds the token; zero: "token"
	Flat     bool     // progress, total and message stand beside the token, and there is no value
	WorkDone bool     // value is that of LSP: begin, report and end, with a percentage
	Tokens   []string // where params may have the token, "/name" or "/_meta/name"; own calls have it at the first; zero: "/_meta/progressToken", "/workDoneToken"
	Items    []string // likewise for the token of a stream; zero: "/_meta/progressToken", "/partialResultToken", "/workDoneToken"
}

// Notification returns the method of the notification and the member that has the
// token.
func (d *ProgressDialect) Notification() (method, token string) {
	return or(d.Method, "$/progress"), or(d.Token, "token")
}

// FindToken returns the token that params, which may be nil, have at the first of the
// places that has one: a string or a number, as it is written. It is nil where there
// is none.
func FindToken(params []byte, places []string) []byte {
	for _, place := range places {
		name, inMeta := placeOf(place)
		object := params
		if inMeta {
			object = codec.Find(params, metaMember)
		}
		token := codec.Find(object, name)
		if _, ok := codec.KeyOf(token); ok {
			return token
		}
	}
	return nil
}

// placeOf takes "/name" or "/_meta/name" apart.
func placeOf(pointer string) (name string, inMeta bool) {
	if name, ok := strings.CutPrefix(pointer, "/"+metaMember+"/"); ok {
		return name, true
	}
	return strings.TrimPrefix(pointer, "/"), false
}

// At adds a member where the pointer says: "/name" is Param, "/_meta/name" is Meta.
func (x *Extension) At(pointer string, value []byte) {
	if name, inMeta := placeOf(pointer); inMeta {
		x.Meta(name, value)
	} else {
		x.Param(name, value)
	}
}

// Places lists where params may have the token for progress, and that for items.
func (d *ProgressDialect) Places() (progress, items []string) {
	const standard, lsp, lspItems = "/" + metaMember + "/progressToken", "/workDoneToken", "/partialResultToken"
	progress, items = d.Tokens, d.Items
	if len(progress) == 0 {
		progress = []string{standard, lsp}
	}
	if len(items) == 0 {
		items = []string{standard, lspItems, lsp}
	}
	return progress, items
}

// OnProgress has f called with the progress of the call, one after the other, in the
// goroutine of the caller and before Call returns: with all that arrived before the
// answer. While f runs the connection goes on; progress that comes faster than f
// returns is dropped, never the newest, and counted as DroppedProgress. A call that
// is cut short by its context drops what f has not seen.
//
// The call asks for it by a token, and fails with ErrNoPlace where the profile has no
// progress or the params are an array.
func OnProgress(f func(Progress)) CallOption {
	return func(o *callOptions) { o.progress = f }
}

// Updates returns the progress of a call as a sequence. It hands call the option to
// pass on, runs it, and yields in its place:
//
//	for p := range peer.Updates(func(each peer.CallOption) {
//		report, err = Run.Call(ctx, conn, task, each)
//	}) {
//		fmt.Println(p.Done, p.Message)
//	}
//
// The loop ends when call has returned, in the same goroutine. Leaving it earlier does
// not end the call, which is waited for; a context does.
func Updates(call func(each CallOption)) iter.Seq[Progress] {
	return func(yield func(Progress) bool) {
		more := true
		call(OnProgress(func(p Progress) {
			if more {
				more = yield(p)
			}
		}))
	}
}

// Bounds on what waits for the function of OnProgress.
const (
	maxUpdates     = 256
	maxUpdateBytes = 256 << 10
)

// updates is the progress of one call on its way from the reader to the caller.
type updates struct {
	f       func(Progress)
	dialect *ProgressDialect
	wake    chan struct{}
	dropped func()

	mu    sync.Mutex
	texts [][]byte // of the objects that say it
	bytes int
}

func (c *Conn) newUpdates(f func(Progress)) *updates {
	return &updates{f: f, dialect: &c.opts.Profile.Progress, wake: make(chan struct{}, 1),
		dropped: func() { c.events.add(Event{Kind: DroppedProgress, Method: otherMethod}) }}
}

// asks makes an own call ask for its progress. The token is a string, so that it is
// none of those that streams have.
func (u *updates) asks(x *Extension) error {
	if u.dialect.Off {
		return fmt.Errorf("%w: the profile has no progress", ErrNoPlace)
	}
	token := codec.StringID("p" + strconv.FormatInt(x.ID, 10))
	places, _ := u.dialect.Places()
	x.At(places[0], token.AppendTo(nil))
	method, member := u.dialect.Notification()
	return x.Control(method, member, token, u.add)
}

// add takes one notification. The reader calls it.
func (u *updates) add(params *codec.Object) {
	text := u.dialect.object(params)
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.texts); n > 0 && (n >= maxUpdates || u.bytes+len(text) > maxUpdateBytes) {
		u.bytes -= len(u.texts[n-1])
		u.texts = u.texts[:n-1]
		u.dropped()
	}
	u.texts = append(u.texts, bytes.Clone(text))
	u.bytes += len(text)
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// object is the text of the object that has the progress.
func (d *ProgressDialect) object(params *codec.Object) []byte {
	if d.Flat {
		return params.Text()
	}
	return params.Find("value")
}

// deliver calls the function with what is there, until ctx ends.
func (u *updates) deliver(ctx context.Context) {
	u.mu.Lock()
	texts := u.texts
	u.texts, u.bytes = nil, 0
	u.mu.Unlock()
	for _, text := range texts {
		if ctx.Err() != nil {
			return
		}
		if p, ok := u.dialect.read(text); ok {
			u.f(p)
		}
	}
}

// read takes such an object apart. It reports false for one that says nothing: the
// formalities of LSP, and what is no progress.
func (d *ProgressDialect) read(object []byte) (p Progress, ok bool) {
	formal := false // of LSP, which begins and ends without saying how far it is
	for o := codec.ObjectOf(object); o.Next(); {
		switch name := string(o.Name); {
		case name == "progress" && !d.WorkDone:
			p.Done, ok = number(o.Value), true
		case name == "total" && !d.WorkDone:
			p.Total = number(o.Value)
		case name == "percentage" && d.WorkDone:
			p.Done, p.Total, ok = number(o.Value), 100, true
		case name == "message":
			p.Message, _ = codec.Unquote(o.Value)
			ok = true
		case name == "kind" && d.WorkDone:
			formal = string(o.Value) != `"report"`
		}
	}
	return p, ok && (!formal || p.Message != "")
}

// number is the value of a JSON number, 0 where literal is none. What is out of range
// is infinite.
func number(literal []byte) float64 {
	if len(literal) > 0 && (literal[0] == '"' || literal[0] > '9') {
		return 0
	}
	f, _ := strconv.ParseFloat(string(literal), 64)
	return f
}

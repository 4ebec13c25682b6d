package peer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
)

// maxReason bounds what is kept of the reason of a cancel, in bytes.
const maxReason = 1 << 10

// cancelled handles the profile's cancel notification in the reader. It finds
// the call by its exact id, running or still waiting to start; any other id is
// counted and nothing else.
func (c *Conn) cancelled(params *codec.Object) {
	cancel := &c.opts.Profile.Cancel
	id, reason := cancel.read(params)
	named, _ := codec.ParseID(id) // the absent id, which no call has, where there is none
	cause := &CancelError{}
	if cancel.Reason != "" {
		text, _ := codec.Unquote(reason) // no text, no reason
		cause.Reason = clip(text, maxReason)
	}
	c.mu.Lock()
	r := c.served.calls.find(named)
	if r == nil || r.exempt {
		method := r.name()
		c.mu.Unlock()
		// Where the other end makes no calls it means one of ours.
		if c.opts.Profile.OneWay && !c.opts.Accepts && c.settle(named, reply{buf: c.buffers.get(0), ended: cause}) {
			return
		}
		c.events.add(Event{Kind: UnknownCancel, Method: method})
		return
	}
	r.cancelled.Store(true)
	ctx := r.ctx // r is another's as soon as it is answered
	held := slices.Index(c.order.held, r)
	if held >= 0 {
		c.order.held = slices.Delete(c.order.held, held, held+1)
	}
	c.mu.Unlock()
	var ended error = cause
	ctx.end(&ended)
	if held >= 0 {
		// It will find that it was cancelled, so there is nothing to wait for.
		c.launch(r)
	}
}

// read finds the id and the reason in the params of a cancel, in one pass and
// without holding on to what else is there. An id that stands twice is none.
func (c Cancel) read(params *codec.Object) (id, reason []byte) {
	found := 0
	for params.Next() {
		switch string(params.Name) {
		case c.field():
			found++
			id = params.Value
		case c.Reason:
			reason = params.Value
		}
	}
	if found != 1 {
		return nil, nil
	}
	return id, reason
}

// message encodes the notification that gives up the call id.
func (c Cancel) message(rules *codec.Rules, own ownCancel) []byte {
	members := []codec.Member{{Name: c.field(), Value: codec.NumberID(own.id).AppendTo(nil)}}
	if c.Reason != "" && own.reason != "" {
		members = append(members, codec.Member{Name: c.Reason, Value: codec.AppendString(nil, clip(own.reason, maxReason))})
	}
	return codec.AppendNotification(nil, rules, c.method(), codec.AppendObject(nil, nil, members))
}

// ownCancel is an own call that was given up.
type ownCancel struct {
	id     int64
	reason string
}

// reasonOf is what the other end is told about why ctx ended: the reason of a
// *CancelError that was its cause, or that its time was over.
func reasonOf(ctx context.Context) string {
	cause := context.Cause(ctx)
	var cancel *CancelError
	switch {
	case errors.As(cause, &cancel):
		return cancel.Reason
	case errors.Is(cause, context.DeadlineExceeded):
		return "deadline exceeded"
	}
	return ""
}

// clip returns a copy of the first n bytes of text, cut between characters.
func clip(text string, n int) string {
	if len(text) > n {
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	return strings.Clone(text)
}

package peer

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/duetrpc/duet/codec"
)

// maxReason bounds what is kept of the reason of a cancel, in bytes.
const maxReason = 1 << 10

// cancelled handles the profile's cancel notification in the reader. It finds
// the call by its exact id, running or still waiting to start; any other id is
// counted and nothing else.
func (c *Conn) cancelled(params []byte) {
	cancel := &c.opts.Profile.Cancel
	id, reason := cancel.read(params)
	named, _ := codec.ParseID(id) // the absent id, which no call has, where there is none
	cause := &CancelError{}
	if cancel.Reason != "" {
		// No text, no reason.
		_ = jsonv2.Unmarshal(reason, &cause.Reason, jsontext.AllowInvalidUTF8(true))
		cause.Reason = clip(cause.Reason, maxReason)
	}
	c.mu.Lock()
	r := c.served.calls.find(named)
	if r == nil || r.exempt {
		method := r.name()
		c.mu.Unlock()
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
func (c Cancel) read(params []byte) (id, reason []byte) {
	d := jsontext.NewDecoder(bytes.NewReader(params), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, nil
	}
	found := 0
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, nil
		}
		at := &reason
		switch name.String() {
		case c.field():
			found++
			at = &id
		case c.Reason:
		default:
			if d.SkipValue() != nil {
				return nil, nil
			}
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, nil
		}
		*at = bytes.Clone(value)
	}
	if found != 1 {
		return nil, nil
	}
	return id, reason
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

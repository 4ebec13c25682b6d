package peer

import (
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
	// A name that stands twice makes this fail: of two ids none is cancelled.
	var members map[string]jsontext.Value
	var key codec.Key
	if jsonv2.Unmarshal(params, &members, jsontext.AllowInvalidUTF8(true)) == nil {
		if id, err := codec.ParseID(members[cancel.field()]); err == nil {
			key = id.Key()
		}
	}
	cause := &CancelError{}
	if cancel.Reason != "" {
		// No text, no reason.
		_ = jsonv2.Unmarshal(members[cancel.Reason], &cause.Reason, jsontext.AllowInvalidUTF8(true))
		cause.Reason = clip(cause.Reason, maxReason)
	}
	c.mu.Lock()
	r := c.served.calls[key]
	if r == nil || r.exempt {
		c.mu.Unlock()
		c.events.add(Event{Kind: UnknownCancel, Method: r.name()})
		return
	}
	r.cancelled = true
	held := slices.Index(c.order.held, r)
	if held >= 0 {
		c.order.held = slices.Delete(c.order.held, held, held+1)
	}
	c.mu.Unlock()
	r.cancel(cause)
	if held >= 0 {
		// It will find that it was cancelled, so there is nothing to wait for.
		c.spawn(func() { c.run(r) })
	}
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

package peer

import (
	"encoding/json"
	"slices"

	"github.com/duetrpc/duet/codec"
)

// cancelled handles the profile's cancel notification in the reader. It finds
// the call by its exact id, running or still waiting to start; any other id is
// counted and nothing else.
func (c *Conn) cancelled(params []byte) {
	cancel := &c.opts.Profile.Cancel
	var members map[string]json.RawMessage
	var key codec.Key
	if json.Unmarshal(params, &members) == nil {
		if id, err := codec.ParseID(members[cancel.field()]); err == nil {
			key = id.Key()
		}
	}
	cause := &CancelError{}
	if cancel.Reason != "" {
		_ = json.Unmarshal(members[cancel.Reason], &cause.Reason) // no text, no reason
	}
	c.mu.Lock()
	r := c.served.calls[key]
	if r != nil && !cancel.exempt(r.Method) {
		r.cancelled = true
		if i := slices.Index(c.order.held, r); i >= 0 {
			// It will not run, so there is nothing to wait for.
			c.order.held = slices.Delete(c.order.held, i, i+1)
			c.spawn(func() { c.run(r) })
		}
		c.mu.Unlock()
		r.cancel(cause)
		return
	}
	c.mu.Unlock()
	c.events.add(Event{Kind: UnknownCancel, Method: r.name()})
}

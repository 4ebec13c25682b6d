package peer

import (
	"context"
	"fmt"
	"slices"

	"github.com/duetrpc/duet/pending"
)

// BatchItem is one request of a Batch.
type BatchItem struct {
	Method       string
	Params       any
	Result       any  // decoded into, as by Call; nil drops it
	Notification bool // no answer is expected

	// Err is set by Batch: nil if the call succeeded, or the notification was
	// queued; otherwise a *CallError.
	Err error
}

// Batch sends items as one array and waits for the answers (JSON-RPC 2.0
// section 6). An item that cannot be encoded, or for which the message has no
// room left, fails alone. Batch returns an error if the array could not be
// sent, or if the wait was cut short; which items have an answer, their Err tells.
// An end that refuses the whole array, for its length or since it takes none,
// says so with id null, which names none of the calls: bound the wait with ctx.
// An item counts as maybe sent from when the array is queued. Without items Batch
// does nothing.
func (c *Conn) Batch(ctx context.Context, items []BatchItem) error {
	for i := range items {
		items[i].Err = nil
	}
	switch {
	case len(items) == 0:
		return nil
	case c.rules.NoBatch:
		return c.failBatch(items, ErrNoBatch)
	case len(items) > c.rules.BatchItems:
		return c.failBatch(items, &LimitError{What: "BatchItems", Limit: int64(c.rules.BatchItems), Got: int64(len(items))})
	}
	r := requestOf(ctx)
	if err := c.mayCall(ctx, r); err != nil {
		return c.failBatch(items, err)
	}
	defer c.checkDrained()
	slots := make([]*pending.Slot[reply], len(items))
	m := outgoingMessage{buf: c.buffers.get(0), own: true}
	defer func() { // where user code panics; otherwise they are settled by then
		for _, slot := range slots {
			if slot != nil {
				c.yieldsNot(slot.ID)
				c.called(slot)
			}
		}
	}()
	for i := range items {
		if err := c.appendItem(ctx, m.buf, &items[i], &slots[i]); err != nil {
			items[i].fail(pending.NotSent, err)
			continue
		}
		if slots[i] != nil {
			m.slots = append(m.slots, slots[i])
		}
	}
	if len(m.buf.b) == 0 {
		m.buf.release()
		return nil
	}
	m.buf.b = append(m.buf.b, ']')
	for _, slot := range m.slots {
		if r != nil && r.notification {
			c.yields(r, slot)
		}
		// From here on no call can be taken back without the others.
		slot.Leave()
	}
	var err error
	if m.room, err = c.acquire(ctx, len(m.buf.b)); err == nil {
		err = c.push(&m, false)
	}
	if err != nil {
		m.buf.release()
		return c.failBatch(items, err)
	}
	if err := c.takeReplies(ctx, items, slots); err != nil {
		return fmt.Errorf("peer: batch: %w", err)
	}
	return nil
}

// takeReplies waits for all answers, once for the notifications before them, and
// decodes them. It returns why the wait was cut short.
func (c *Conn) takeReplies(ctx context.Context, items []BatchItem, slots []*pending.Slot[reply]) error {
	var cut error
	var barrier uint64
	bytes := 0
	replies := make([]reply, len(items))
	for i, slot := range slots {
		if slot == nil {
			continue
		}
		var err error
		if replies[i], err = c.waitReply(ctx, slot, false); err != nil {
			items[i].fail(c.sentState(slot), err)
			cut = err
			continue
		}
		barrier = max(barrier, replies[i].barrier)
		bytes += len(replies[i].result)
	}
	late := c.awaitOrder(ctx, barrier, bytes)
	for i := range replies {
		rep := &replies[i]
		switch {
		case rep.buf == nil:
		case late != nil:
			rep.buf.release()
			items[i].fail(pending.Sent, late)
			cut = late
		default:
			if err := c.takeReply(*rep, items[i].Result); err != nil {
				items[i].fail(pending.Sent, err)
			}
		}
	}
	return cut
}

// appendItem encodes one item behind those before it. A call gets its slot.
func (c *Conn) appendItem(ctx context.Context, buf *buffer, item *BatchItem, slot **pending.Slot[reply]) error {
	if err := checkResult(item.Result); err != nil {
		return err
	}
	if slices.Contains(c.rules.NotInBatch, item.Method) {
		return fmt.Errorf("%w: this method may not stand in a batch", ErrNoBatch)
	}
	var id int64
	if !item.Notification {
		if c.opts.Profile.OneWay && c.opts.Accepts {
			return ErrDirection
		}
		s, err := c.calls.Add(item.Method, "")
		if err != nil {
			return err
		}
		c.active.Add(1)
		*slot, id = s, s.ID
	}
	start := len(buf.b)
	sep := byte(',')
	if start == 0 {
		sep = '['
	}
	buf.b = append(buf.b, sep)
	t := text{id: id, method: item.Method, value: item.Params}
	var err error
	if t.add, err = c.additionsOf(ctx, !item.Notification); err == nil {
		err = c.encodeRequest(buf, &t)
	}
	if most := c.opts.Limits.MessageBytes; err == nil && int64(len(buf.b)+1) > most {
		err = &LimitError{What: "MessageBytes", Limit: most, Got: int64(len(buf.b) + 1)}
	}
	if err != nil {
		if *slot != nil {
			c.called(*slot)
			*slot = nil
		}
		buf.b = buf.b[:start]
	}
	return err
}

func (i *BatchItem) fail(sent pending.State, err error) {
	i.Err = &CallError{Method: i.Method, Sent: sent, Err: err}
}

// failBatch fails every item that has not failed by itself.
func (c *Conn) failBatch(items []BatchItem, err error) error {
	for i := range items {
		if items[i].Err == nil {
			items[i].fail(pending.NotSent, err)
		}
	}
	return fmt.Errorf("peer: batch: %w", err)
}

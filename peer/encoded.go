package peer

import (
	"bytes"
	"context"

	"github.com/duetrpc/duet/codec"
)

// Encoded is a notification that is encoded and not sent, for packages that extend the
// protocol and have to know its size before. It ends with Send or Drop, one of which
// has to be called.
type Encoded struct {
	// Size is that of the JSON text of the value, in bytes, without space around it.
	Size int

	c *Conn
	m outgoingMessage
}

// Encode encodes a notification whose params are the JSON of value between two texts,
// which together with it have to make an object: that is not looked at. value itself is
// held to the rules of params. The notification does not pass through Options.Outgoing,
// and carries no Meta.
func (c *Conn) Encode(method string, before []byte, value any, after []byte) (e Encoded, err error) {
	buf := c.buffers.get(c.out.expected())
	done := false
	defer func() {
		if !done { // user code may have panicked, too
			buf.release()
		}
	}()
	buf.b = append(codec.OpenNotification(buf.b, &c.rules, method), before...)
	at := len(buf.b)
	if err := c.encodeValue(buf, value); err != nil {
		return e, &jsonError{"params", err}
	}
	e.Size = len(bytes.Trim(buf.b[at:], " \t\r\n")) // raw JSON may have space around it
	buf.b = codec.Close(append(buf.b, after...))
	if n, most := int64(len(buf.b)), c.opts.Limits.MessageBytes; n > most {
		return e, &LimitError{What: "MessageBytes", Limit: most, Got: n}
	}
	c.out.expect(len(buf.b))
	buf.trim()
	done = true
	e.c, e.m = c, outgoingMessage{buf: buf, own: true}
	return e, nil
}

// Send queues the notification, as [Conn.Notify] does, and also while the connection
// shuts down.
func (e *Encoded) Send(ctx context.Context) error { return e.send(ctx, false) }

// Now is Send for what the other end waits for: where nothing is queued, and the
// transport can, it is written before Now returns.
func (e *Encoded) Now(ctx context.Context) error { return e.send(ctx, true) }

func (e *Encoded) send(ctx context.Context, now bool) error {
	c := e.c
	// While the connection shuts down this goes on: it belongs to calls that are waited
	// for.
	var err error
	switch {
	case c.ctx.Err() != nil:
		err = c.endCause()
	case ctx.Err() != nil:
		err = contextError(ctx)
	default:
		if e.m.room, err = c.acquire(ctx, len(e.m.buf.b)); err == nil {
			if err = c.push(&e.m, now); err == nil {
				return nil
			}
		}
	}
	e.Drop()
	return err
}

// Drop ends it without sending.
func (e *Encoded) Drop() { e.m.buf.release() }

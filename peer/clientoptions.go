package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

// ClientOptions are the choices of a [Client]. nil and the zero value mean the
// defaults. They are copied when given; what they point to must not change after that.
//
// The functions are the user's own and may use the Client. One that panics, or ends its
// goroutine, is logged, and has failed; it ends neither the process nor the Client.
type ClientOptions struct {
	// Options are those of every connection.
	Options

	// Dial makes one socket; ctx bounds that, and Dial has to return when it ends. nil
	// dials the URL with Options.WebSocket. With Dial the URL is not looked at.
	Dial func(ctx context.Context) (Transport, error)

	// Session makes the Transport of each connection. It dials by d as often as it
	// likes, also later, while the connection lives: so a connection can outlive its
	// sockets. ctx ends with the Client. nil is one socket a connection.
	Session func(ctx context.Context, d *Redialer) (Transport, error)

	// OnConnect runs on each new connection before any call of the Client goes out on
	// it, to open a session or to subscribe. It calls through conn: the Client waits for
	// it to return. ctx ends with the connection, and so with the Client. An error, or
	// no end within DialTimeout, closes the connection, and that was a failed attempt.
	// It does not run where a session goes on over a new socket. nil does nothing.
	OnConnect func(ctx context.Context, conn *Conn) error

	// OnState is told how the Client fares, one state at a time and in order, from a
	// goroutine of its own. It must not block for long: of states that come faster than
	// it returns, the oldest of many are dropped. It must not wait for Done. nil is fine.
	OnState func(ClientState)

	// GiveUp is asked with the error of each failed attempt, and with what ended each
	// connection, as this end saw it; not where this end closed it. true ends the Client
	// with that error. nil never gives up.
	GiveUp func(error) bool

	// FirstWait bounds the first pause before the Client dials again; each later one may
	// be twice as long, up to MaxWait. A pause is a random part of that, so that the
	// clients of a server that restarts do not come back all at once. A connection, or
	// a socket of a session, that lived for ten times FirstWait has the pauses begin
	// anew. Default 500 ms and 30 s.
	FirstWait, MaxWait time.Duration

	// DialTimeout bounds the making of one socket, and then OnConnect. Default 30 s.
	DialTimeout time.Duration
}

// prepare returns a copy of o with all defaults set, for a Client of url.
func (o *ClientOptions) prepare(url string) (*ClientOptions, error) {
	var p ClientOptions
	if o != nil {
		p = *o
	}
	conn, err := p.Options.prepare()
	if err != nil {
		return nil, err
	}
	p.Options = *conn
	p.Accepts = false
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"FirstWait", p.FirstWait}, {"MaxWait", p.MaxWait}, {"DialTimeout", p.DialTimeout}} {
		if f.value < 0 {
			return nil, &OptionError{Field: f.name, Reason: fmt.Sprintf("is %v, which is negative", f.value)}
		}
	}
	if p.MaxWait > 0 && p.MaxWait < p.FirstWait {
		return nil, &OptionError{Field: "MaxWait", Reason: fmt.Sprintf("is %v, less than FirstWait of %v", p.MaxWait, p.FirstWait)}
	}
	// One that is given binds the other's default.
	p.MaxWait = or(p.MaxWait, max(30*time.Second, p.FirstWait))
	p.FirstWait = or(p.FirstWait, min(500*time.Millisecond, p.MaxWait))
	p.DialTimeout = or(p.DialTimeout, 30*time.Second)
	if p.Dial == nil {
		if err := wsconn.CheckURL(url); err != nil {
			return nil, err
		}
		p.Dial = func(ctx context.Context) (Transport, error) {
			ws, _, err := wsconn.Dial(ctx, url, &p.WebSocket)
			if err != nil {
				return nil, err
			}
			return ws, nil
		}
	}
	if p.Session == nil {
		p.Session = func(ctx context.Context, d *Redialer) (Transport, error) { return d.Dial(ctx, nil) }
	}
	return &p, nil
}

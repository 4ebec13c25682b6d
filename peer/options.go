package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/duetrpc/duet/wsconn"
)

// Options are the choices of one connection, or of all connections of a Server.
// nil and the zero value mean the defaults. Options are copied when given; what
// they point to must not change after that.
type Options struct {
	// Handler answers incoming calls and takes notifications; usually a
	// *Registry. nil refuses all of them: calls are answered with -32601.
	Handler Handler

	// Profile holds the rules of the protocol. nil is base JSON-RPC 2.0.
	Profile *Profile

	// Limits bounds what the other end can make this end hold.
	Limits Limits

	// JSON encodes and decodes typed params and results. nil is JSONv2.
	JSON JSON

	// Logger gets what an operator should know, a handler's panic or the error
	// behind a -32603 for instance. nil logs nothing, so give it slog.Default() at
	// least. Params, results and error data are never logged.
	Logger *slog.Logger

	// Events gets what never becomes an answer, one call at a time, from a
	// goroutine of its own. nil is fine: everything is counted in Stats anyway.
	// Events that come faster than it returns are dropped and counted as Lost.
	Events func(Event)

	// BaseContext is the parent of all handlers' contexts. nil is
	// context.Background. Its end reaches handlers; it does not end connections.
	BaseContext context.Context

	// Outgoing wraps every Call and Notify of this end, the first outermost.
	// Batch does not pass through it.
	Outgoing []func(Caller) Caller

	// Accepts says that the other end dialled this one. Accept and Server set it, Dial
	// takes it back; New leaves it. It counts where the profile is one way.
	Accepts bool

	// Meta goes out in params._meta of every request of this end, as with WithMeta.
	Meta Meta

	// TopLevelTrace has traceparent and tracestate stand beside the params and not in
	// params._meta, going out and coming in, as StreamJsonRpc has it.
	TopLevelTrace bool

	// Deadlines sends the time that a caller's context has left along with the call, and
	// ends the context of a handler when the time its caller sent is over; so both ends
	// have to set it. It travels as params._meta["io.github.duetrpc/timeout"], a number of
	// milliseconds, and not where the params are an array.
	Deadlines bool

	// NoBarrier starts calls, and returns answers, without waiting for the
	// notifications that arrived before them. Notifications still run one after
	// another.
	NoBarrier bool

	// Authorize is asked before an upgrade is accepted, after the Origin and
	// Host checks. The values of the context it returns reach the handlers; nil
	// stands for the request's own. An error refuses the upgrade with 401, or
	// 403 if it is ErrForbidden; its text is logged and not sent.
	Authorize func(*http.Request) (context.Context, error)

	// Transport wraps an accepted connection. The context of its request has the
	// values that Authorize returned. If it returns nil and no error it has taken
	// the connection over, Accept returns ErrTaken, and a Server no longer counts
	// it.
	Transport func(*http.Request, Transport) (Transport, error)

	// WebSocket are the options of the socket, for Dial, Accept and Server.
	// Its ReadLimit and WriteTimeout are set from Limits, its Logger from Logger
	// where it has none.
	WebSocket wsconn.Options

	unobserved bool    // neither Logger nor Events
	depths     *depths // of what is sent
}

// OptionError says which field of Options is wrong. It is returned by
// Options.Validate, Dial and Accept; New and NewServer panic with it.
type OptionError struct {
	Field  string // for instance "Limits.InFlight"
	Reason string
}

func (e *OptionError) Error() string { return "peer: Options." + e.Field + " " + e.Reason }

// Validate reports the first mistake in o as an *OptionError. A nil o is fine.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	if err := o.Limits.validate(); err != nil {
		return err
	}
	if p := o.Profile; p != nil {
		for name, n := range map[string]int{"Depth": p.Rules.Depth, "BatchItems": p.Rules.BatchItems, "IDBits": p.Rules.IDBits} {
			if n < 0 {
				return &OptionError{Field: "Profile.Rules." + name, Reason: fmt.Sprintf("is %d, which is negative", n)}
			}
		}
	}
	if r, ok := o.Handler.(*Registry); o.Handler != nil && (isNil(o.Handler) || ok && r == nil) {
		return &OptionError{Field: "Handler", Reason: fmt.Sprintf("is a nil %T", o.Handler)}
	}
	for _, wrap := range o.Outgoing {
		if wrap == nil {
			return &OptionError{Field: "Outgoing", Reason: "holds a nil function"}
		}
	}
	if o.WebSocket.ReadLimit != 0 {
		return &OptionError{Field: "WebSocket.ReadLimit", Reason: "is set: use Limits.MessageBytes"}
	}
	if o.WebSocket.WriteTimeout != 0 {
		return &OptionError{Field: "WebSocket.WriteTimeout", Reason: "is set: use Limits.WriteTimeout"}
	}
	if err := o.WebSocket.Validate(); err != nil {
		var bad *wsconn.OptionError
		if errors.As(err, &bad) {
			return &OptionError{Field: "WebSocket." + bad.Field, Reason: bad.Reason}
		}
		return err
	}
	return nil
}

// prepare returns a copy of o with all defaults set.
func (o *Options) prepare() (*Options, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var p Options
	if o != nil {
		p = *o
	}
	p.Limits = p.Limits.withDefaults()
	if p.Profile == nil {
		p.Profile = &Profile{}
	}
	if p.Handler == nil {
		p.Handler = &Registry{}
	}
	if p.JSON == nil {
		p.JSON = JSONv2{}
	}
	p.depths = &depths{}
	p.unobserved = p.Logger == nil && p.Events == nil
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.BaseContext == nil {
		p.BaseContext = context.Background()
	}
	if p.WebSocket.Buffers == nil {
		p.WebSocket.Buffers = &wsconn.Buffers{}
	}
	p.WebSocket.ReadLimit = p.Limits.MessageBytes
	p.WebSocket.WriteTimeout = p.Limits.WriteTimeout
	if p.WebSocket.Logger == nil {
		p.WebSocket.Logger = p.Logger
	}
	if r, ok := p.Handler.(lookuper); ok {
		r.freeze()
	}
	return &p, nil
}

package peer

import (
	"slices"

	"github.com/duetrpc/duet/codec"
)

// Profile holds the rules in which a protocol on top of JSON-RPC differs from
// the base. It is data: nothing in peer asks which protocol it serves. The zero
// Profile is base JSON-RPC 2.0; package profile has values for others. A Profile
// is not changed after it is given to a connection.
type Profile struct {
	// Name is the name the profile is chosen by, for instance "lsp-3.17".
	Name string

	// Rules are the rules of the envelope.
	Rules codec.Rules

	// NamedNotifications lets a notification run only if its method was
	// registered with HandleNotification. Otherwise the handler of a call serves
	// the notification of the same name too, and its result is dropped.
	NamedNotifications bool

	// Cancel says how a call is given up.
	Cancel Cancel

	// Progress says how a handler tells its caller how far it is.
	Progress ProgressDialect

	// Opening says what comes before the session is open.
	Opening Opening

	// OneWay lets only the dialling end make calls. It answers those of the other end
	// with OneWayCode, zero meaning InvalidRequest; notifications go both ways.
	OneWay     bool
	OneWayCode codec.Code

	// RequiredMeta lists members that params._meta of every incoming call must have;
	// one without is answered with InvalidParams. Options.Meta sends them.
	RequiredMeta []string

	// Cancelled, Overloaded and ShuttingDown are the codes of the errors this
	// library makes itself. Zero means the constants of these names.
	Cancelled, Overloaded, ShuttingDown codec.Code

	// Codes lists the codes inside -32768..-32000 that the protocol gives to
	// applications. Others in that range are reported as [ReservedCode].
	Codes []codec.Code
}

// Cancel says how one end tells the other that it gave up a call. The zero
// value is the notification "$/cancelRequest" with {"id": id}, and a cancelled
// call is still answered.
type Cancel struct {
	Off    bool     // no cancel message is sent, and none is understood
	Method string   // zero: "$/cancelRequest"
	Field  string   // the member of params that holds the id; zero: "id"
	Reason string   // the member that holds the reason, a text; zero: none
	Silent bool     // a cancelled call is not answered
	Exempt []string // methods that cannot be cancelled
}

func (c Cancel) method() string { return or(c.Method, "$/cancelRequest") }
func (c Cancel) field() string  { return or(c.Field, "id") }

func (c Cancel) exempt(method string) bool { return slices.Contains(c.Exempt, method) }

func (p *Profile) cancelled() codec.Code    { return or(p.Cancelled, Cancelled) }
func (p *Profile) overloaded() codec.Code   { return or(p.Overloaded, Overloaded) }
func (p *Profile) shuttingDown() codec.Code { return or(p.ShuttingDown, ShuttingDown) }

// reserved reports whether an application should not have chosen code: it lies
// in the range that JSON-RPC 2.0 section 5.1 reserves, and neither that section
// nor the profile gives it to applications. Invalid params is the one code of
// the section that only a handler can decide on.
func (p *Profile) reserved(code codec.Code) bool {
	return -32768 <= code && code <= -32000 && code != codec.InvalidParams &&
		code != p.cancelled() && code != p.overloaded() && code != p.shuttingDown() && !slices.Contains(p.Codes, code)
}

// or returns v, or otherwise if v is its zero value.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

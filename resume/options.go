package resume

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Options are the choices of one end. nil and the zero value mean the defaults. They are
// copied when given.
type Options struct {
	// Buffer is how many bytes of messages that the other end has not acknowledged a
	// session holds. Default 4 MiB, at least 4 KiB. When it is full writers wait. One
	// larger message may pass alone.
	Buffer int64

	// Handshake bounds the exchange that begins each socket. Default 10 s.
	Handshake time.Duration

	// Logger gets when sessions lose their sockets, and go on; that one is lost is the
	// connection's to log. Ids are never logged. nil is that of the connections' options.
	Logger *slog.Logger

	// Anonymous, of the accepting end, has sessions for those without a principal, too.
	// Then whoever has an id can take the session up, and all of them are one
	// principal, whose share is everything.
	Anonymous bool

	// Park, of the accepting end, is how long a session without a socket is kept.
	// Default 2 min. It is told to the dialling end, which gives up then as well.
	Park time.Duration

	// Parked and ParkedBytes, of the accepting end, bound the sessions without a socket,
	// and what they hold to send again. Default 1,024 and 64 MiB. What waits in the queues
	// of their connections has the bound of these, Limits.QueueBytes each.
	Parked      int
	ParkedBytes int64

	// PrincipalParked and PrincipalBytes are the share of one principal in these. Default
	// 16 and 16 MiB. Over it the principal's own oldest session without a socket ends.
	PrincipalParked int
	PrincipalBytes  int64

	pool *sync.Pool // of *chunk
}

// OptionError says which field of Options is wrong.
type OptionError struct {
	Field  string
	Reason string
}

func (e *OptionError) Error() string { return "resume: Options." + e.Field + " " + e.Reason }

// Validate reports the first mistake in o as an *OptionError. A nil o is fine.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	for _, f := range []struct {
		name       string
		value, min int64
	}{
		{"Buffer", o.Buffer, 4 << 10},
		{"Handshake", int64(o.Handshake), 1},
		{"Park", int64(o.Park), int64(time.Millisecond)}, // what is told to the other end
		{"Parked", int64(o.Parked), 1},
		{"ParkedBytes", o.ParkedBytes, 1},
		{"PrincipalParked", int64(o.PrincipalParked), 1},
		{"PrincipalBytes", o.PrincipalBytes, 1},
	} {
		if f.value != 0 && f.value < f.min {
			return &OptionError{f.name, fmt.Sprintf("is %d, and must be 0 or at least %d", f.value, f.min)}
		}
	}
	return nil
}

// prepare returns a copy of o with all defaults set. It panics with an *OptionError.
func (o *Options) prepare() *Options {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	var p Options
	if o != nil {
		p = *o
	}
	p.Buffer = or(p.Buffer, 4<<20)
	p.Handshake = or(p.Handshake, 10*time.Second)
	p.Park = or(p.Park, 2*time.Minute)
	p.Parked = or(p.Parked, 1024)
	p.ParkedBytes = or(p.ParkedBytes, 64<<20)
	p.PrincipalParked = or(p.PrincipalParked, 16)
	p.PrincipalBytes = or(p.PrincipalBytes, 16<<20)
	p.pool = &sync.Pool{}
	return &p
}

// logger is Logger, or one that discards.
func (o *Options) logger() *slog.Logger { return or(o.Logger, slog.New(slog.DiscardHandler)) }

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

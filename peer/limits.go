package peer

import (
	"fmt"
	"time"
)

// Limits bounds what the other end can make this end hold. Zero fields mean the
// defaults named here, which suit a server on the open internet; negative ones
// are an error. One item larger than a bound in bytes may pass alone, where
// MessageBytes allows it.
type Limits struct {
	// MessageBytes is the size of one envelope, both ways. Default 4 MiB, at
	// least 1 KiB. An incoming one over it ends the connection (close code
	// 1009); an outgoing one fails where it was made.
	MessageBytes int64

	// InFlight is the number of incoming calls admitted and not yet answered,
	// and InFlightBytes the bytes of their messages. Default 1,024 and 8 MiB.
	// A call over it is answered with the profile's Overloaded error. A result
	// that waits to be written counts, too, but is never dropped: no handler
	// of a call starts while anybody waits for room, so what waits are results of
	// those that had started.
	InFlight      int
	InFlightBytes int64

	// BatchItems is the number of messages in one array, both ways. Default
	// 4,096. A longer array is refused before anything in it runs.
	BatchItems int

	// Pending is the number of own calls that wait for an answer. Default
	// 16,384. Over it Call fails with pending.ErrFull.
	Pending int

	// Abandoned is the number of own calls that are remembered after their
	// callers gave up, to recognise late answers. Default 1,024.
	Abandoned int

	// Notifications is the number of incoming notifications that are queued or
	// running, and NotificationBytes the bytes of their messages. Default 8,192
	// and 16 MiB. Over it the connection ends (close code 1008).
	Notifications     int
	NotificationBytes int64

	// QueueBytes is the number of bytes encoded and not yet written. Default 1
	// MiB, at least 4 KiB. A quarter of it is kept for the answers this library
	// makes itself; where they do not fit the connection ends (close code 1008).
	// Others wait for room.
	QueueBytes int64

	// StreamBytes is the number of bytes that handlers may be sent beside the params
	// of their calls, as items of a caller's are, and that they have not taken. Default 16
	// MiB. See [Conn.Reserve].
	StreamBytes int64

	// OrderWait bounds how long a call, or an answer, waits for the
	// notifications that arrived before it. Default 5 s. Answers that wait hold
	// at most InFlightBytes; one more goes on at once.
	OrderWait time.Duration

	// WriteTimeout bounds one write to the socket. Default 10 s. It applies to
	// Dial, Accept and Server; another Transport minds its own.
	WriteTimeout time.Duration

	// Connections is the number of connections a Server holds. Default 10,000.
	// Over it an upgrade is answered with 503.
	Connections int
}

// withDefaults returns l with every zero field set.
func (l Limits) withDefaults() Limits {
	l.MessageBytes = or(l.MessageBytes, 4<<20)
	l.InFlight = or(l.InFlight, 1024)
	l.InFlightBytes = or(l.InFlightBytes, 8<<20)
	l.BatchItems = or(l.BatchItems, 4096)
	l.Pending = or(l.Pending, 16384)
	l.Abandoned = or(l.Abandoned, 1024)
	l.Notifications = or(l.Notifications, 8192)
	l.NotificationBytes = or(l.NotificationBytes, 16<<20)
	l.QueueBytes = or(l.QueueBytes, 1<<20)
	l.StreamBytes = or(l.StreamBytes, 16<<20)
	l.OrderWait = or(l.OrderWait, 5*time.Second)
	l.WriteTimeout = or(l.WriteTimeout, 10*time.Second)
	l.Connections = or(l.Connections, 10000)
	return l
}

// validate returns an *OptionError for the first bad field.
func (l Limits) validate() error {
	for _, f := range []struct {
		name       string
		value, min int64
	}{
		{"MessageBytes", l.MessageBytes, 1 << 10},
		{"InFlight", int64(l.InFlight), 1},
		{"InFlightBytes", l.InFlightBytes, 1},
		{"BatchItems", int64(l.BatchItems), 1},
		{"Pending", int64(l.Pending), 1},
		{"Abandoned", int64(l.Abandoned), 1},
		{"Notifications", int64(l.Notifications), 1},
		{"NotificationBytes", l.NotificationBytes, 1},
		{"QueueBytes", l.QueueBytes, 4 << 10},
		{"StreamBytes", l.StreamBytes, 1},
		{"OrderWait", int64(l.OrderWait), 1},
		{"WriteTimeout", int64(l.WriteTimeout), 1},
		{"Connections", int64(l.Connections), 1},
	} {
		if f.value != 0 && f.value < f.min {
			return &OptionError{Field: "Limits." + f.name, Reason: fmt.Sprintf("is %d, and must be 0 or at least %d", f.value, f.min)}
		}
	}
	return nil
}

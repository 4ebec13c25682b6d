package peer

import (
	"context"
	"reflect"
)

// Transport carries whole messages, in order, both ways. wsconn.Conn is one,
// [Pipe] makes two in memory, and a package above can wrap another.
//
// A Transport may have more methods, with the meaning and the signatures that they
// have in wsconn.Conn: TryWrite, so that a message that goes alone is written by
// the goroutine that sends it, ReadGrow, so that an idle connection holds no buffer,
// and Yield, so that answers leave while more is read. One whose messages the other
// end acknowledges has Acknowledged, Flush and GoingAway, as package resume's does. All
// of them are used only where it has a method Self too, which returns the Transport itself: so one that embeds
// another, and with it these methods, gets every message through its own Read and
// Write.
type Transport interface {
	// Read waits for the next message and appends it to buf, which may be nil.
	// The caller owns buf and what is returned. One Read runs at a time. After
	// an error there is nothing more to read; io.EOF, or an error that is
	// io.EOF for errors.Is, says that the other end ended the connection in
	// order. ctx ends when the connection does.
	Read(ctx context.Context, buf []byte) ([]byte, error)

	// Write sends all of msgs, in order, and returns when they are handed to
	// the system. It retains nothing. One Write runs at a time. After an error
	// it is not known how many of them left.
	Write(ctx context.Context, msgs ...[]byte) error

	// Close ends the connection and returns at once; what is left of an orderly
	// end runs behind it, and ends the running Read and Write. A nil cause is an
	// orderly end. A cause that has, or wraps, a method
	// WebSocketClose() (code int, reason string) says what to tell the other
	// end. It may be called at any time, and again.
	Close(cause error) error
}

// isItself reports whether the optional methods of t are its own.
func isItself(t Transport) bool {
	s, ok := t.(interface{ Self() any })
	return ok && reflect.TypeOf(t).Comparable() && s.Self() == any(t)
}

// tryWriter is a Transport that can write without waiting. It is called in the
// place of Write, never beside it.
type tryWriter interface {
	TryWrite(msg []byte) (took, flushed bool)
}

// yielder is a Transport that lets others run between two Reads, if it is told to.
type yielder interface{ Yield() }

// acknowledger is a Transport that learns what arrived at the other end.
type acknowledger interface {
	// Acknowledged is how many of the messages given to Write and TryWrite the
	// other end has said to have. It is called after the end, too.
	Acknowledged() uint64

	// Ready waits until there is a way for Write. The error is why there will be none.
	Ready(ctx context.Context) error

	// Flush waits until that is all of them, until ctx ends, or until there is no
	// hope.
	Flush(ctx context.Context) error

	// GoingAway says that the other end has no way back to this one but the
	// socket there is.
	GoingAway()
}

// growReader is a Transport that asks for a buffer when a message has begun to
// arrive.
type growReader interface {
	ReadGrow(ctx context.Context, buf []byte, grow func(buf []byte, n int) []byte) ([]byte, error)
}

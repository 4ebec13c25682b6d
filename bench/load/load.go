// Package load puts measured loads on two ends of a connection in one process.
//
// A [System] opens a [Pair] on a [Wire], which counts the system calls of both
// ends; [Run] puts one [Load] on the pair and returns a [Result]. A pair that
// answers anything but what it was sent fails the run. [Idle] measures connections
// on which nothing happens.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Kind is what a load is made of.
type Kind string

// The kinds of loads.
const (
	Typed  Kind = "typed"  // calls, Go values in and out
	Raw    Kind = "raw"    // calls, JSON text in and out
	Notify Kind = "notify" // notifications of Go values, counted where they are handled
	Stream Kind = "stream" // items of one stream, Go values, counted where they are taken
)

// Load is one thing to measure.
type Load struct {
	Name     string  `json:"name"`
	Kind     Kind    `json:"kind"`
	Size     int     `json:"size"`               // bytes of the JSON text of params
	InFlight int     `json:"inFlight"`           // calls at once; senders of notifications or items; in an open loop at most so many, the others wait in line
	Rate     float64 `json:"rate,omitempty"`     // arrivals a second, open loop; 0: closed loop
	Calls    int     `json:"calls,omitempty"`    // how many, closed loop; 0: as many as fit the time
	Share    float64 `json:"share,omitempty"`    // open loop at this share of what the same calls reach in a closed one, 256 in flight, just before
	TLS      bool    `json:"tls,omitempty"`      // wss
	Resume   bool    `json:"resume,omitempty"`   // over a session of package resume
	Methods  int     `json:"methods,omitempty"`  // in the registry beside the called one
	OpenCall bool    `json:"openCall,omitempty"` // one call stays open during the load; see Stay
}

// Stay is a Doc.Seq that no load sends but OpenCall's: the echo keeps such a call
// open until the context of its handler ends, and fails it then. Only systems
// that are measured with OpenCall heed it.
const Stay = -1

// Pair is two connected ends in this process: one calls, the other echoes. Its
// methods may be used concurrently. They keep nothing of in after they return,
// and what they return is the caller's own.
type Pair interface {
	Call(ctx context.Context, in, out *Doc) error
	// CallRaw puts the answer into out, whose memory it may use again.
	CallRaw(ctx context.Context, in json.RawMessage, out *json.RawMessage) error
	Notify(ctx context.Context, in *Doc) error

	// Handled is the number of notifications and items the other end has decoded and
	// handled.
	Handled() uint64

	Close() error
}

// Streamer is a Pair that has a stream, too.
type Streamer interface {
	Send(ctx context.Context, in *Doc) error
}

// System makes pairs of one library.
type System struct {
	Name  string
	Kinds []Kind // what its pairs can do
	Open  func(ctx context.Context, s Setup) (Pair, error)
}

// Setup is what a System builds a pair on.
type Setup struct {
	Wire    *Wire
	TLS     bool
	Resume  bool
	Methods int // to register beside the echo
}

// oneWay reports whether nothing is answered.
func (l Load) oneWay() bool { return l.Kind == Notify || l.Kind == Stream }

// open reports whether calls begin at a fixed rate.
func (l Load) open() bool { return l.Rate > 0 || l.Share > 0 }

// validate names the first field of l that cannot be meant, as its JSON does.
func (l Load) validate() error {
	switch {
	case l.Kind != Typed && l.Kind != Raw && !l.oneWay():
		return fmt.Errorf("kind %q is none of %q, %q, %q, %q", l.Kind, Typed, Raw, Notify, Stream)
	case l.Size < leastSize:
		return fmt.Errorf("size %d is below %d, the least of a document", l.Size, leastSize)
	case l.InFlight < 1 || l.InFlight > maxWorkers:
		return fmt.Errorf("inFlight %d is not in 1 to %d", l.InFlight, maxWorkers)
	case l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("rate %v is no rate", l.Rate)
	case l.Calls < 0:
		return fmt.Errorf("calls %d is negative", l.Calls)
	case l.Share < 0 || l.Share > 0 && l.Rate > 0:
		return fmt.Errorf("share %v of the maximum: it is no share, or there is a rate too", l.Share)
	case l.open() && l.Calls > 0:
		return errors.New("rate and calls exclude each other")
	case l.oneWay() && (l.open() || l.Calls > 0):
		return errors.New("notifications and items have neither rate nor calls")
	}
	return nil
}

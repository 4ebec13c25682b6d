package main

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
)

// kind is what a fault does.
type kind string

// The cuts. The first five are the relay's own, to the byte; the others are toxics of
// toxiproxy, which begin at a byte.
const (
	reset     kind = "reset"      // both ends get a reset
	halfClose kind = "half-close" // one direction ends, the other goes on
	truncate  kind = "truncate"   // both ends get an orderly end, in the midst of a message
	blackhole kind = "blackhole"  // nothing passes any more, and nobody is told
	oneWay    kind = "one-way"    // the same in one direction

	limitData kind = "limit_data" // param bytes more
	resetPeer kind = "reset_peer" // a reset param milliseconds after the next bytes
	timeout   kind = "timeout"    // a blackhole that ends after param milliseconds of silence
)

// The shapes, all of them toxics: what they do to a connection does not end it.
const (
	latency   kind = "latency"    // param milliseconds
	bandwidth kind = "bandwidth"  // param KB a second
	slicer    kind = "slicer"     // pieces of about param bytes
	slowClose kind = "slow_close" // the end is passed on param milliseconds late
)

// fault is one thing that goes wrong with a connection.
type fault struct {
	Kind  kind
	Up    bool  // of what the client sends
	After int64 // of a cut: the bytes of that direction that pass before
	Param int64
}

// script is all that goes wrong with one connection: some shapes, and one cut.
type script struct {
	Shapes []fault
	Cut    fault
}

// script returns what is to happen to a connection of a client, counted from zero. It
// depends on nothing but its arguments: the same seed has the same faults.
func plan(seed uint64, client, connection int) script {
	r := rand.New(rand.NewPCG(seed, uint64(client)<<32|uint64(connection)))
	s := script{Cut: cut(r)}
	for _, up := range []bool{true, false} {
		if r.IntN(4) == 0 {
			f := shape(r)
			f.Up = up
			s.Shapes = append(s.Shapes, f)
		}
	}
	return s
}

// cut draws a cut. Those that both ends see at once are the most frequent: the others take
// the time that it takes to notice them.
func cut(r *rand.Rand) fault {
	f := fault{Up: r.IntN(2) == 0, After: after(r)}
	switch n := r.IntN(100); {
	case n < 30:
		f.Kind = reset
	case n < 50:
		f.Kind = truncate
	case n < 65:
		f.Kind = halfClose
	case n < 70:
		f.Kind = blackhole
	case n < 75:
		f.Kind = oneWay
	case n < 85:
		f.Kind, f.Param = limitData, 1+r.Int64N(2000)
	case n < 95:
		f.Kind, f.Param = resetPeer, r.Int64N(30)
	default:
		f.Kind, f.Param = timeout, 20+r.Int64N(200)
	}
	return f
}

// after draws the byte of a cut: one in three in the handshakes, of HTTP and of the session,
// the others anywhere, with small numbers as likely as large ones.
func after(r *rand.Rand) int64 {
	if r.IntN(3) == 0 {
		return r.Int64N(700)
	}
	return int64(math.Exp(math.Log(700) + r.Float64()*(math.Log(60_000)-math.Log(700))))
}

func shape(r *rand.Rand) fault {
	switch r.IntN(4) {
	case 0:
		return fault{Kind: latency, Param: 1 + r.Int64N(60)}
	case 1:
		return fault{Kind: bandwidth, Param: 100 + r.Int64N(1000)}
	case 2:
		return fault{Kind: slicer, Param: 1 + r.Int64N(200)}
	default:
		return fault{Kind: slowClose, Param: r.Int64N(60)}
	}
}

// digest tells plans apart: it is made of the first 1,000 scripts.
func digest(seed uint64, clients int) string {
	h := sha256.New()
	for i := range 1000 {
		fmt.Fprintln(h, plan(seed, i%clients, i/clients))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

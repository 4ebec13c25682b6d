package peertest

import (
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
)

// Pair returns two connected peers with the given options, either of which may
// be nil. At the end of the test both are closed, and the test fails if one of
// them does not come to an end within ten seconds, as with a handler that does
// not return.
func Pair(tb testing.TB, left, right *peer.Options) (*peer.Conn, *peer.Conn) {
	tb.Helper()
	a, b := peer.Pipe()
	return Start(tb, a, left), Start(tb, b, right)
}

// Start returns a peer over t, which is closed at the end of the test as by
// Pair.
func Start(tb testing.TB, t peer.Transport, opts *peer.Options) *peer.Conn {
	tb.Helper()
	c := peer.New(t, opts)
	tb.Cleanup(func() {
		_ = c.Close()
		select {
		case <-c.Done():
		case <-time.After(10 * time.Second):
			tb.Error("peertest: a connection does not end: does a handler wait for something?")
		}
	})
	return c
}

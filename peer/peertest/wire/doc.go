// Package wire runs wire cases against any JSON-RPC 2.0 server that is reached
// over WebSocket.
//
// A wire case is one conversation on a fresh connection: what the client
// sends, down to single frames, and which messages may come back. The format
// is described in testdata/FORMAT.md; the cases of this module are embedded
// and come from [Cases], other files are read with [Parse]. A [Runner] plays a
// case and says in an [Outcome] whether it passed, by which of the permitted
// outcomes, or what was wrong.
//
// The client inside is small and raw on purpose. It must be able to send what
// a WebSocket library refuses to send (reserved bits, missing masks, a message
// inside a message), and it must see what a library hides (masked answers,
// close frames without a code, pongs that never come).
package wire

import (
	"bytes"
	_ "embed"
)

//go:embed testdata/cases.jsonl
var embedded []byte

// Cases returns the embedded cases in the order of their file. Every call
// returns new values, which belong to the caller.
func Cases() ([]Case, error) {
	return Parse(bytes.NewReader(embedded))
}

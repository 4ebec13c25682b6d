// Package codec is the wire of JSON-RPC 2.0: bytes to messages and back.
//
// [Envelope.Decode] reads one JSON text in one pass and says of every message
// in it what it is: a call, a notification, a response, or something that has
// to be refused, and then with which id. It decides by the members that are
// present, under their exact names, before anything can be dispatched. The
// Append and Open functions write messages.
//
// Params, results and data stay raw JSON: their meaning is the business of the
// method, not of the wire. [Rules] narrow what is accepted for a dialect; the
// zero Rules are JSON-RPC 2.0 as it is published.
//
// The package keeps no state between calls, starts no goroutine and knows
// neither connections nor time.
package codec

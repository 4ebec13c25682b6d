// Package peertest makes tests of code that uses package peer easier: two
// connected peers in memory, a bare end that speaks raw JSON-RPC text, and
// conversations kept as text files.
//
// Everything works inside a testing/synctest bubble, where a test can tell that
// nothing more will come without waiting for it. Package wire beside it runs
// conformance cases against a server.
package peertest

// Package pending remembers who waits for which id.
//
// A [Table] holds the calls one end has made and whose answers are still to
// come. Each call is a [Slot]: it is in the table before its bytes can leave,
// it is settled exactly once (by its answer, by the caller giving up, or by the
// end of the connection), and its id is never used again. Calls whose callers
// gave up are remembered for a while, so that a late answer can be told apart
// from one that nobody asked for. What finds slots by their ids is a [Ring].
//
// The package knows neither JSON nor sockets: an answer is whatever type the
// table is made for.
package pending

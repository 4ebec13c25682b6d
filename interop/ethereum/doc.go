// Package ethereum holds tests of the two ends of duet against those of go-ethereum,
// over real WebSockets: calls, batches, notifications, and subscriptions in the form of
// eth_subscribe. It has no code of its own.
package ethereum

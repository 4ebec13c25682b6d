// Package peer is JSON-RPC 2.0 between two equals over one connection, usually a
// WebSocket. Either end calls, notifies and answers.
//
// A server registers handlers and serves them; a client dials and calls. Both
// share the contract, a constant:
//
//	const Add = peer.Method[Pair, int]("add")
//
//	var reg peer.Registry
//	Add.Handle(&reg, func(ctx context.Context, in Pair) (int, error) { return in.A + in.B, nil })
//	http.ListenAndServe(addr, peer.NewServer(&peer.Options{Handler: &reg, Logger: slog.Default()}))
//
//	conn, err := peer.Dial(ctx, url, nil)
//	sum, err := Add.Call(ctx, conn, Pair{1, 2})
//
// What one end can do the other can, too: a client may have a Handler, and a
// handler calls back with [CallerFrom]. The untyped forms of a contract are
// [Registry.Handle] and [Conn.Call].
//
// # Words
//
// A call has an id and is answered by a response; a notification has none and is
// not. Both are requests. An envelope is what one transport message carries: a
// message, or a batch of them. Own calls are those this end makes.
//
// # Order
//
//   - Notifications of one connection run one at a time, as they arrived.
//   - A call starts when the notifications that arrived before it have returned.
//   - Call returns when the notifications that arrived before its answer have
//     returned.
//   - What one goroutine sends leaves in that order.
//
// Two exceptions keep a handler from waiting for itself. While the handler of a
// notification waits in a call made with its context, calls start before it has
// returned, and the answers to what they call in turn do not wait for it either;
// and its own call waits for no notification. The waits are bounded by
// Limits.OrderWait, a handler gives its place up with [Async], and
// Options.NoBarrier turns the second and the third rule off.
//
// There is no order between calls, or between what different goroutines send.
//
// # Errors
//
// An *[Error] crosses the wire. A handler returns one to choose code, message and
// data; any other error becomes a bare -32603 there and a line in the log here.
// The caller finds it with errors.As in the *[CallError] that every failed Call
// returns, beside what else may have gone wrong: the end of the context, a
// *[LimitError], a *[ResponseError], or the cause the connection ended with.
// CallError.Sent tells whether the other end may have run the call.
//
// # Giving up, progress, metadata
//
// A call is given up by the end of its context, and the handler's context ends then; a
// *[CancelError] as the cause carries a reason both ways. [OnProgress] and
// [Updates] show a caller what a handler reports with [ProgressFrom]. [WithMeta] sends
// members of params._meta with all requests of a context, [MetaFrom] reads them in
// a handler, and [RequestFrom] has the request itself for a typed one. Package stream
// has calls with items.
//
// [Extend], [Conn.Control], [Conn.Encode] and [Answered] are for packages that
// extend the protocol, as that one does.
//
// # Limits
//
// What the other end can make this end hold is bounded by [Limits], with
// defaults that suit a server on the open internet. A call over a bound is
// answered with the code [Overloaded]; what cannot be answered within its bounds
// ends the connection, with a cause that says which bound it was.
//
// # The end of a connection
//
// Close ends it at once, Shutdown finishes what runs first. Done is closed when
// all goroutines of the connection have ended; wait for it to find out that a
// connection is over, whichever end ended it. Err is the reason, nil where the
// end was meant. A Conn that has ended stays ended.
//
// A [Client] makes a new one, runs ClientOptions.OnConnect on it, and has calls wait
// meanwhile; it makes again only what was not sent, or what is [Idempotent]. Package resume
// has connections that outlive their sockets.
//
// # Protocols
//
// Options.Profile takes the rules of a protocol on top of JSON-RPC; package
// profile has those of MCP, LSP, ACP and others. Events that never become an answer, a
// late response for instance, are counted in [Conn.Stats], handed to
// Options.Events and logged.
package peer

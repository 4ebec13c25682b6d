// Package stream has calls whose handlers send items before they answer, for tokens
// and rows, and calls whose callers do: in order, none lost, and at the pace of who
// reads them. It is built on package peer's exported API.
//
//	const Run = stream.Method[Task, Token, Report]("agent.run") // shared
//
//	Run.Handle(&reg, func(ctx context.Context, in Task, send func(Token) error) (Report, error) {
//		...
//		err := send(token)
//		...
//	})
//
//	s := Run.Call(ctx, conn, task)
//	for token, err := range s.All() {
//		...
//	}
//	report, err := s.Result()
//
// # Pace
//
// Who receives grants a window, 64 items and 1 MiB unless told otherwise, and more as
// items are used. send waits for that credit, not for the socket, so who reads one
// stream slowly holds up that stream alone. An item that is larger than the window
// leaves when nothing else is on its way. To an end that grants nothing, since it does
// not know of credit, items leave as the connection takes them. From an end that heeds
// none, items that nobody takes pile up to a bound, and then the stream ends with
// [ErrSlowConsumer].
//
// Items and credit pass by handlers and their queues: a handler that waits in send, or
// for an item, keeps neither away from itself.
//
// # Outcomes
//
// After the last item [Stream.All] yields the error of the call, if there is one, and
// [Stream.Result] returns it:
//
//   - nil: the handler returned, and every item was yielded;
//   - an error with the handler's *peer.Error: it failed after the items before;
//   - an error with the cause the connection ended with: it was lost, and so are the
//     items that had not arrived;
//   - the error of the caller's context, which ended first;
//   - [ErrStopped]: the loop was left, and the call was cancelled;
//   - [ErrSlowConsumer]: the other end sent more than it was asked for;
//   - an *[ItemError]: an item was none of this type, and the call was cancelled;
//   - an error with [peer.ErrNoPlace]: the profile, or params that are an array, have
//     no place for a stream, and nothing was sent.
//
// # Subscriptions
//
// [Topics] serve subscriptions in the shape that nodes of Ethereum have: a call returns an
// id, notifications with it follow, and none comes before it. A [Subscriber] gets
// them. They have no credit: an end that does not keep up loses its subscription, with
// [ErrSlowConsumer], and nothing in silence.
//
// What travels is written down in docs/streams.md, for ends that are not duet.
package stream

// Package resume lets a connection outlive its sockets. Where both ends speak it a session
// goes on over the next WebSocket when one is lost: calls, callbacks, notifications and streams
// continue, each message exactly once and in order, and handlers never notice.
//
//	sessions := resume.NewSessions(nil)
//	server := peer.NewServer(sessions.Server(&peer.Options{Handler: &methods, Authorize: authorize}))
//
//	client, err := peer.NewClient(url, resume.Client(&peer.ClientOptions{...}, nil))
//
// It is offered as the WebSocket subprotocol [Subprotocol]. With an end that does not
// speak it the connection is a plain one; [peer.Conn.Resumes] tells.
//
// A session holds what was sent until the other end has acknowledged it, so that it can be
// sent again; the memory for that is bounded, and writers wait at the bound. When a socket
// is lost, the accepting end parks the session, within bounds of number, bytes and time,
// and the dialling end dials again. What is over is never made to look as if it went on:
// the end of a parked session, a bound that was passed, a process that was started anew end
// the connection at either end with a *[GapError], every call that waits fails with it,
// and the next connection begins a new session.
//
// While there is no socket, what was not yet handed to one waits in the queue of the
// connection, within its bounds, and is not sent as far as a [peer.CallError] tells; what
// was, is maybe sent until the other end acknowledges it, and sent from then on.
//
// A session belongs to the principal that Options.Authorize named with
// [peer.WithPrincipal], and can be taken up by that one alone. Without a principal there are no
// sessions, unless [Options.Anonymous] says otherwise.
//
// docs/resume.md specifies the protocol.
package resume

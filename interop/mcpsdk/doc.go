// Package mcpsdk lets the Go SDK of the Model Context Protocol,
// github.com/modelcontextprotocol/go-sdk, speak over a transport of duet, a
// WebSocket for instance. Either end may be the SDK's, and the other may be duet's
// or anybody's:
//
//	ws, _, err := wsconn.Dial(ctx, url, &wsconn.Options{Subprotocols: []string{mcpsdk.Subprotocol}})
//	session, err := client.Connect(ctx, mcpsdk.New(ws), nil)
//
//	// in an http.Handler
//	ws, err := wsconn.Accept(w, r, &wsconn.Options{Subprotocols: []string{mcpsdk.Subprotocol}})
//	session, err := server.Connect(r.Context(), mcpsdk.New(ws), nil)
//
// A session lives as long as its connection: the context of Connect bounds the
// handshake, and no more. One message goes in one message of the transport. There
// are no batches, which only revision 2025-03-26 has: an array ends the connection.
package mcpsdk

// Subprotocol is the WebSocket subprotocol of MCP, as the SDKs in TypeScript and
// Python have it. The specification names none.
const Subprotocol = "mcp"

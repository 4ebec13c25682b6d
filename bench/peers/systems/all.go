// Package systems has what duet is measured beside, each as a load.System.
package systems

import "github.com/duetrpc/duet/bench/load"

// The names of the systems, by which results are found.
const (
	DuetName        = "duet"
	LSPInlineName   = "go.lsp.dev, inline"
	LSPAsyncName    = "go.lsp.dev, async"
	EthereumName    = "go-ethereum/rpc"
	ExpName         = "x/exp/jsonrpc2"
	JRPC2Name       = "creachadair/jrpc2"
	SourcegraphName = "sourcegraph/jsonrpc2"
	GRPCStreamName  = "grpc-go, stream"
	GRPCUnaryName   = "grpc-go, unary"
	PostName        = "net/http POST"
	CoderName       = "raw coder/websocket"
	CoalescedName   = "raw coder/websocket, coalesced"
	GorillaName     = "raw gorilla/websocket"
	TCPName         = "raw TCP, coalesced"
)

// All is duet and every other system, in the order of tables.
func All() []load.System {
	return []load.System{
		load.Duet(),
		LSPInline(),
		LSPAsync(),
		Ethereum(),
		Exp(),
		JRPC2(),
		Sourcegraph(),
		GRPCStream(),
		GRPCUnary(),
		Post(),
		Coder(),
		Coalesced(),
		Gorilla(),
		TCP(),
	}
}

package profile

import (
	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// mcp is what the revisions of the Model Context Protocol have in common (basic,
// "Messages"; basic/utilities/cancellation; basic/utilities/progress): ids are strings
// or integers and never null, params and results are objects, a request that was
// cancelled is not answered, and progress is asked for in _meta.
func mcp(name string) *peer.Profile {
	return &peer.Profile{
		Name: name,
		Rules: codec.Rules{
			NoBatch:      true,
			NoNullID:     true,
			IntegerID:    true,
			ObjectParams: true,
			ObjectResult: true,
		},
		NamedNotifications: true,
		Cancel: peer.Cancel{
			Method: "notifications/cancelled",
			Field:  "requestId",
			Reason: "reason",
			Silent: true,
		},
		Progress: peer.ProgressDialect{
			Method: "notifications/progress",
			Token:  "progressToken",
			Flat:   true,
			Tokens: []string{"/_meta/progressToken"},
			Items:  []string{"/_meta/progressToken"},
		},
	}
}

// symmetric is what the revisions have in common in which both ends make requests
// (basic/lifecycle): initialize opens the session and cannot be cancelled, and before
// it only ping is for the other end to send. What an end answers then the revisions
// leave open; it is an invalid request here.
func symmetric(name string) *peer.Profile {
	p := mcp(name)
	p.Cancel.Exempt = []string{"initialize"}
	p.Opening = peer.Opening{Call: "initialize", Calls: []string{"ping"}}
	p.Codes = []codec.Code{-32002} // resource not found (server/resources)
	return p
}

// MCP20241105 is MCP revision 2024-11-05, whose schema has no batches.
func MCP20241105() *peer.Profile { return symmetric("mcp-2024-11-05") }

// MCP20250326 is MCP revision 2025-03-26, the one in which batches must be
// received; initialize must not stand in one (basic/lifecycle).
func MCP20250326() *peer.Profile {
	p := symmetric("mcp-2025-03-26")
	p.Rules.NoBatch = false
	p.Rules.NotInBatch = []string{"initialize"}
	return p
}

// MCP20250618 is MCP revision 2025-06-18, which removed batches.
func MCP20250618() *peer.Profile { return symmetric("mcp-2025-06-18") }

// MCP20251125 is MCP revision 2025-11-25, the last symmetric one. Its schema
// gives -32042 to URL elicitation.
func MCP20251125() *peer.Profile {
	p := symmetric("mcp-2025-11-25")
	p.Codes = append(p.Codes, -32042)
	return p
}

// MCP20260728 is MCP revision 2026-07-28, in which only clients make requests
// (basic/patterns) and every request says in its _meta which revision and which
// capabilities it goes by (basic, "_meta"), since there is no handshake: those without
// get -32602. The codes -32020..-32022 are the schema's; no other of -32020..-32099 may
// be sent, and this library sends none.
func MCP20260728() *peer.Profile {
	p := mcp("mcp-2026-07-28")
	p.OneWay = true
	p.RequiredMeta = []string{"io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"}
	p.Codes = []codec.Code{-32020, -32021, -32022} // header mismatch, missing capability, unsupported version
	p.Overloaded, p.ShuttingDown = 429, 503        // new codes lie outside -32768..-32000 (basic, "Error Codes"); named as in HTTP
	return p
}

package profile

import (
	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// mcp is what the symmetric revisions of the Model Context Protocol have in
// common (basic, "Messages", and basic/utilities/cancellation): ids are strings
// or integers and never null, params and results are objects, a request that was
// cancelled is not answered, and initialize cannot be cancelled.
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
			Exempt: []string{"initialize"},
		},
		Codes: []codec.Code{-32002}, // resource not found
	}
}

// MCP20241105 is MCP revision 2024-11-05, whose schema has no batches.
func MCP20241105() *peer.Profile { return mcp("mcp-2024-11-05") }

// MCP20250326 is MCP revision 2025-03-26, the one in which batches must be
// received; initialize must not stand in one (basic/lifecycle).
func MCP20250326() *peer.Profile {
	p := mcp("mcp-2025-03-26")
	p.Rules.NoBatch = false
	p.Rules.NotInBatch = []string{"initialize"}
	return p
}

// MCP20250618 is MCP revision 2025-06-18, which removed batches.
func MCP20250618() *peer.Profile { return mcp("mcp-2025-06-18") }

// MCP20251125 is MCP revision 2025-11-25, the last symmetric one. Its schema
// gives -32042 to URL elicitation.
func MCP20251125() *peer.Profile {
	p := mcp("mcp-2025-11-25")
	p.Codes = append(p.Codes, -32042)
	return p
}

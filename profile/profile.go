// Package profile holds the rules of protocols on top of JSON-RPC 2.0 as values
// of [peer.Profile]. They are data: a protocol that is not here is a
// peer.Profile of your own.
//
// Each function returns a new value, which may be changed before it is given to
// a connection.
package profile

import (
	"slices"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// Names lists the names that Named knows.
func Names() []string {
	var names []string
	for _, p := range all() {
		names = append(names, p.Name)
	}
	return names
}

// Named returns the profile with that name, or false.
func Named(name string) (*peer.Profile, bool) {
	profiles := all()
	i := slices.IndexFunc(profiles, func(p *peer.Profile) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return profiles[i], true
}

func all() []*peer.Profile {
	return []*peer.Profile{
		Base(), MCP20241105(), MCP20250326(), MCP20250618(), MCP20251125(), LSP317(), ACPv1(),
	}
}

// Base is JSON-RPC 2.0 as it is published.
func Base() *peer.Profile { return &peer.Profile{Name: "base"} }

// LSP317 is the base protocol of the Language Server Protocol 3.17: ids are
// strings or 32-bit integers, there are no batches, and a cancelled request is
// still answered ($/cancelRequest, "Cancellation Support"). Editors send
// "params":null, which counts as absent.
func LSP317() *peer.Profile {
	return &peer.Profile{
		Name: "lsp-3.17",
		Rules: codec.Rules{
			NoBatch:    true,
			NoNullID:   true,
			IntegerID:  true,
			IDBits:     32,
			NullParams: true,
		},
		NamedNotifications: true,
		Cancel:             peer.Cancel{Method: "$/cancelRequest", Field: "id", Exempt: []string{"initialize"}},
		Cancelled:          -32800, // RequestCancelled
		Codes:              []codec.Code{-32002, -32001},
	}
}

// ACPv1 is the Agent Client Protocol, version 1: ids are strings, 64-bit
// integers or null, params and results are objects, there are no batches, and a
// cancelled request is still answered ($/cancel_request).
func ACPv1() *peer.Profile {
	return &peer.Profile{
		Name: "acp-v1",
		Rules: codec.Rules{
			NoBatch:      true,
			IntegerID:    true,
			IDBits:       64,
			ObjectParams: true,
			ObjectResult: true,
		},
		NamedNotifications: true,
		Cancel:             peer.Cancel{Method: "$/cancel_request", Field: "requestId", Exempt: []string{"initialize"}},
		Cancelled:          -32800,
		Codes:              []codec.Code{-32000, -32002}, // authentication required, resource not found
	}
}

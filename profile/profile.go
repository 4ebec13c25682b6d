// Package profile holds the rules of protocols on top of JSON-RPC 2.0 as values
// of [peer.Profile]. They are data: a protocol that is not here is a
// peer.Profile of your own. docs/profiles.md has them side by side.
//
// Each function returns a new value, which may be changed before it is given to
// a connection.
package profile

import (
	"slices"

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
		Base(), MCP20241105(), MCP20250326(), MCP20250618(), MCP20251125(), MCP20260728(), LSP317(), ACPv1(), A2A10(), Codex(),
	}
}

// Base is JSON-RPC 2.0 as it is published, with LSP's notifications for cancels and
// progress, which most ends know that know any.
func Base() *peer.Profile { return &peer.Profile{Name: "base"} }

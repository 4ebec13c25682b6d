package profile

import (
	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// ACPv1 is the Agent Client Protocol, version 1: ids are strings, 64-bit integers or
// null (schema, "RequestId"), params are objects, there are no batches, and
// a cancelled request is still answered ("$/cancel_request"). What happens during a turn
// is told by session/update, which is the application's: the protocol has no progress
// of its own, nor a place for items. What comes before initialize it leaves to the agent.
func ACPv1() *peer.Profile {
	return &peer.Profile{
		Name: "acp-v1",
		Rules: codec.Rules{
			NoBatch:      true,
			IntegerID:    true,
			IDBits:       64,
			ObjectParams: true,
		},
		NamedNotifications: true,
		Cancel:             peer.Cancel{Method: "$/cancel_request", Field: "requestId", Exempt: []string{"initialize"}},
		Progress:           peer.ProgressDialect{Off: true},
		Cancelled:          -32800,
		Codes:              []codec.Code{-32000, -32002}, // authentication required, resource not found
	}
}

// A2A10 is the JSON-RPC binding of the Agent2Agent Protocol 1.0 (section 9), as far as
// one request has one answer: ids are strings or numbers, params are objects, only
// clients make requests, and a task is cancelled by a request of its own, CancelTask.
// Its streaming, several responses under one id, is not served: see docs/profiles.md.
func A2A10() *peer.Profile {
	return &peer.Profile{
		Name: "a2a-1.0",
		Rules: codec.Rules{
			NoBatch:      true,
			NoNullID:     true,
			ObjectParams: true,
		},
		NamedNotifications: true,
		Cancel:             peer.Cancel{Off: true},
		Progress:           peer.ProgressDialect{Off: true},
		OneWay:             true,
		OneWayCode:         codec.MethodNotFound,
		Overloaded:         429, // -32001..-32099 are the protocol's (section 9.5)
		ShuttingDown:       503,
		Codes:              []codec.Code{-32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32009}, // section 9.5
	}
}

// Codex is the wire of Codex's app-server (codex-rs/app-server/README.md): the jsonrpc
// member is left out, params may be null, initialize comes first and once, overload is -32001, and what
// happens during a turn is told by notifications of the application, which also has a
// request to interrupt one.
func Codex() *peer.Profile {
	return &peer.Profile{
		Name: "codex",
		Rules: codec.Rules{
			NoVersion:    true,
			NoBatch:      true,
			NoNullID:     true,
			IntegerID:    true,
			IDBits:       64,
			ObjectParams: true,
			NullParams:   true,
		},
		NamedNotifications: true,
		Cancel:             peer.Cancel{Off: true},
		Progress:           peer.ProgressDialect{Off: true},
		Opening:            peer.Opening{Call: "initialize"},
		Overloaded:         -32001,
		Codes:              []codec.Code{-32001},
	}
}

package profile

import (
	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// LSP317 is the base protocol of the Language Server Protocol 3.17: ids are strings or
// 32-bit integers ("Request Message"), there are no batches, a cancelled request is
// still answered ("Cancellation Support"), progress begins, reports and ends ("Work Done
// Progress"), and items are partial results ("Partial Result Progress"). Before
// initialize a server answers -32002 and drops every notification but exit ("Initialize
// Request"); after shutdown it answers -32600 ("Shutdown Request"). Editors send
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
		Progress: peer.ProgressDialect{
			Method:   "$/progress",
			Token:    "token",
			WorkDone: true,
			Tokens:   []string{"/workDoneToken"},
			Items:    []string{"/partialResultToken"},
		},
		Opening:   peer.Opening{Call: "initialize", Code: -32002, Notices: []string{"exit"}, Close: "shutdown"},
		Cancelled: -32800,                       // RequestCancelled
		Codes:     []codec.Code{-32002, -32001}, // ServerNotInitialized, UnknownErrorCode
	}
}

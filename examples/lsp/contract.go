package main

import (
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// What both halves know of the protocol: the methods they use, and of their types
// the members they use. Comments name the sections of the specification, "Language
// Server Protocol 3.17".
const (
	initialize     = peer.Method[InitializeParams, InitializeResult]("initialize")        // "Initialize Request"
	initialized    = peer.Notification[struct{}]("initialized")                           // "Initialized Notification"
	didOpen        = peer.Notification[DidOpenParams]("textDocument/didOpen")             // "DidOpenTextDocument Notification"
	didChange      = peer.Notification[DidChangeParams]("textDocument/didChange")         // "DidChangeTextDocument Notification"
	didSave        = peer.Notification[DidSaveParams]("textDocument/didSave")             // "DidSaveTextDocument Notification"
	symbols        = peer.Method[SymbolParams, []Symbol]("workspace/symbol")              // "Workspace Symbols Request"
	executeCommand = peer.Method[CommandParams, Fixed]("workspace/executeCommand")        // "Execute a command"
	shutdown       = peer.Method[any, any]("shutdown")                                    // "Shutdown Request"; it has no params
	exit           = peer.Notification[any]("exit")                                       // "Exit Notification"; nor has it
	progress       = peer.Notification[ProgressParams]("$/progress")                      // "Work Done Progress"
	diagnostics    = peer.Notification[Diagnostics]("textDocument/publishDiagnostics")    // "PublishDiagnostics Notification"
	applyEdit      = peer.Method[ApplyEditParams, ApplyEditResult]("workspace/applyEdit") // "Applies a WorkspaceEdit"; the editor handles it

	// The items are partial results ("Partial Result Progress"). An editor that asks for
	// none is refused with -32602, where the protocol would have it get all at once.
	references = stream.Method[ReferenceParams, []Location, []Location]("textDocument/references") // "Find References Request"

	// The server's own, to compare: what text it has.
	digest = peer.Method[Document, Digest]("spelling/digest")
)

const (
	fixCommand = "spelling.fix" // has the editor correct all of one document

	syncIncremental = 2 // TextDocumentSyncKind.Incremental: changes say which range they replace
	severityWarning = 2 // DiagnosticSeverity.Warning

	notInitialized = -32002 // ErrorCodes.ServerNotInitialized
)

// InitializeParams are of the "Initialize Request". An editor without a process id,
// or without a folder, says so by null.
type InitializeParams struct {
	ProcessID    *int               `json:"processId"`
	RootURI      *string            `json:"rootUri"`
	ClientInfo   Info               `json:"clientInfo"`
	Capabilities EditorCapabilities `json:"capabilities"`
}

type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type EditorCapabilities struct {
	Workspace struct {
		ApplyEdit bool `json:"applyEdit"`
	} `json:"workspace"`
	General struct {
		PositionEncodings []string `json:"positionEncodings"` // "Position"
	} `json:"general"`
}

type InitializeResult struct {
	Capabilities ServerCapabilities `json:"capabilities"`
	ServerInfo   Info               `json:"serverInfo"`
}

type ServerCapabilities struct {
	PositionEncoding string `json:"positionEncoding"`
	TextDocumentSync struct {
		OpenClose bool `json:"openClose"`
		Change    int  `json:"change"`
		Save      bool `json:"save"`
	} `json:"textDocumentSync"`
	ReferencesProvider      bool           `json:"referencesProvider"`
	WorkspaceSymbolProvider WorkDoneOption `json:"workspaceSymbolProvider"`
	ExecuteCommandProvider  struct {
		Commands []string `json:"commands"`
		WorkDoneOption
	} `json:"executeCommandProvider"`
}

type WorkDoneOption struct {
	WorkDoneProgress bool `json:"workDoneProgress"`
}

// Document names a document ("TextDocumentIdentifier"), and a version of it.
type Document struct {
	URI     string `json:"uri"`
	Version int    `json:"version,omitzero"`
}

type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}

type DidOpenParams struct {
	TextDocument struct {
		Document
		LanguageID string `json:"languageId"`
		Text       string `json:"text"`
	} `json:"textDocument"`
}

// DidChangeParams has changes that apply one after the other: each counts in the
// text that the one before has left.
type DidChangeParams struct {
	TextDocument   Document `json:"textDocument"`
	ContentChanges []Change `json:"contentChanges"`
}

type DidSaveParams struct {
	TextDocument Document `json:"textDocument"`
}

type Diagnostics struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

type Diagnostic struct {
	Range    Range  `json:"range"`
	Severity int    `json:"severity"`
	Source   string `json:"source"`
	Message  string `json:"message"`
}

type ReferenceParams struct {
	TextDocument Document `json:"textDocument"`
	Position     Position `json:"position"`
	Context      struct {
		IncludeDeclaration bool `json:"includeDeclaration"`
	} `json:"context"`
}

type SymbolParams struct {
	Query string `json:"query"`
}

type Symbol struct {
	Name     string   `json:"name"`
	Kind     int      `json:"kind"`
	Location Location `json:"location"`
}

type CommandParams struct {
	Command       string     `json:"command"`
	Arguments     []Document `json:"arguments"`
	WorkDoneToken string     `json:"workDoneToken"`
}

// Fixed is the result of fixCommand.
type Fixed struct {
	Fixed int `json:"fixed"`
	Left  int `json:"left"`
}

// ApplyEditParams has edits by document. They all count in the text as it was
// before the first ("TextEdit[]").
type ApplyEditParams struct {
	Label string `json:"label"`
	Edit  struct {
		Changes map[string][]TextEdit `json:"changes"`
	} `json:"edit"`
}

type TextEdit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

type ApplyEditResult struct {
	Applied bool `json:"applied"`
}

// ProgressParams tell how far the call is that had the token.
type ProgressParams struct {
	Token string   `json:"token"`
	Value WorkDone `json:"value"`
}

// WorkDone is begin, report or end; the others of its members are of some of them.
type WorkDone struct {
	Kind       string `json:"kind"`
	Title      string `json:"title,omitzero"`
	Message    string `json:"message,omitzero"`
	Percentage int    `json:"percentage,omitzero"`
}

// Digest says what text an end has of a document.
type Digest struct {
	Version int    `json:"version"`
	SHA256  string `json:"sha256"`
}

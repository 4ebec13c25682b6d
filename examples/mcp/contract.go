package main

import (
	"encoding/json"

	"github.com/duetrpc/duet/peer"
)

// What both halves know of the protocol: the methods they use, and of their types
// the members they use. Comments name the pages of the specification, revision
// 2025-11-25, and their sections. Progress and cancelling are not here, since the
// library and its profile know them.
const (
	// Either end handles it.
	ping = peer.Method[any, Empty]("ping") // basic/utilities/ping

	// The server handles these.
	initialize  = peer.Method[InitializeParams, InitializeResult]("initialize") // basic/lifecycle, "Initialization"
	initialized = peer.Notification[any]("notifications/initialized")
	setLevel    = peer.Method[SetLevelParams, Empty]("logging/setLevel")      // server/utilities/logging, "Setting Log Level"
	listTools   = peer.Method[ListToolsParams, ListToolsResult]("tools/list") // server/tools, "Listing Tools"
	callTool    = peer.Method[CallToolParams, CallToolResult]("tools/call")   // server/tools, "Calling Tools"

	// The client handles these.
	elicit       = peer.Method[ElicitParams, ElicitResult]("elicitation/create") // client/elicitation, "Elicitation Requests"
	logMessage   = peer.Notification[LogMessage]("notifications/message")        // server/utilities/logging, "Log Message Notifications"
	toolsChanged = peer.Notification[any]("notifications/tools/list_changed")    // server/tools, "List Changed Notification"
)

// revision is the only one that both halves know.
const revision = "2025-11-25"

// Empty is a result that says nothing but that there is one (schema, "EmptyResult").
type Empty struct{}

// InitializeParams: basic/lifecycle, "Initialization".
type InitializeParams struct {
	ProtocolVersion string             `json:"protocolVersion"`
	Capabilities    ClientCapabilities `json:"capabilities"`
	ClientInfo      Implementation     `json:"clientInfo"`
}

// InitializeResult: basic/lifecycle, "Initialization".
type InitializeResult struct {
	ProtocolVersion string             `json:"protocolVersion"`
	Capabilities    ServerCapabilities `json:"capabilities"`
	ServerInfo      Implementation     `json:"serverInfo"`
}

// Implementation: schema, "Implementation".
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ClientCapabilities has what the client can: a member is there or is not
// (basic/lifecycle, "Capability Negotiation").
type ClientCapabilities struct {
	Elicitation *ElicitationCapability `json:"elicitation,omitzero"`
}

// ElicitationCapability: client/elicitation, "Capabilities". Empty is form mode.
type ElicitationCapability struct {
	Form *struct{} `json:"form,omitzero"`
	URL  *struct{} `json:"url,omitzero"`
}

// form reports whether the client can ask its user to fill in a form.
func (c *ElicitationCapability) form() bool { return c != nil && (c.Form != nil || c.URL == nil) }

// ServerCapabilities has what the server can.
type ServerCapabilities struct {
	Logging *struct{}        `json:"logging,omitzero"` // server/utilities/logging, "Capabilities"
	Tools   *ToolsCapability `json:"tools,omitzero"`   // server/tools, "Capabilities"
}

type ToolsCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
}

// ListToolsParams and ListToolsResult: server/tools, "Listing Tools". Nobody here has
// so many tools that they need pages.
type ListToolsParams struct {
	Cursor string `json:"cursor,omitzero"`
}

type ListToolsResult struct {
	Tools []Tool `json:"tools"`
}

// Tool: server/tools, "Tool".
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputSchema Schema `json:"inputSchema"`
}

// Schema is as much of JSON Schema as a flat object needs: the input of a tool, or
// a form (client/elicitation, "Requested Schema").
type Schema struct {
	Type       string              `json:"type"`
	Properties map[string]Property `json:"properties,omitzero"`
	Required   []string            `json:"required,omitzero"`
}

type Property struct {
	Type    string   `json:"type"`
	Minimum int      `json:"minimum,omitzero"`
	Maximum int      `json:"maximum,omitzero"`
	Enum    []string `json:"enum,omitzero"`
}

// CallToolParams: server/tools, "Calling Tools".
type CallToolParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// CallToolResult: server/tools, "Tool Result". IsError is for what the model may do
// better the next time (server/tools, "Error Handling").
type CallToolResult struct {
	Content []Content `json:"content"`
	IsError bool      `json:"isError,omitzero"`
}

// Content is a text here (server/tools, "Text Content").
type Content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ElicitParams: client/elicitation, "Form Mode Elicitation Requests".
type ElicitParams struct {
	Message         string `json:"message"`
	RequestedSchema Schema `json:"requestedSchema"`
}

// ElicitResult: client/elicitation, "Response Actions".
type ElicitResult struct {
	Action  string            `json:"action"` // accept, decline or cancel
	Content map[string]string `json:"content,omitzero"`
}

// SetLevelParams: server/utilities/logging, "Setting Log Level".
type SetLevelParams struct {
	Level string `json:"level"`
}

// LogMessage: server/utilities/logging, "Log Message Notifications".
type LogMessage struct {
	Level  string `json:"level"`
	Logger string `json:"logger"`
	Data   Ended  `json:"data"` // which may be anything
}

// Ended says how the call of a tool ended that was cancelled.
type Ended struct {
	Reason   string `json:"reason"`
	Answered bool   `json:"answered"`
}

// levels are the levels of the log, from the least to the most severe
// (server/utilities/logging, "Log Levels").
func levels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

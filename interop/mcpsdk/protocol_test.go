package mcpsdk_test

import (
	"encoding/json"

	"github.com/duetrpc/duet/peer"
)

// What the duet ends of these tests know of MCP, by hand.

const revision = "2025-11-25"

const (
	initialize   = peer.Method[initializeParams, initializeResult]("initialize")
	initialized  = peer.Notification[struct{}]("notifications/initialized")
	ping         = peer.Method[struct{}, struct{}]("ping")
	listTools    = peer.Method[struct{}, toolList]("tools/list")
	callTool     = peer.Method[toolCall, toolResult]("tools/call")
	toolsChanged = peer.Notification[struct{}]("notifications/tools/list_changed")
	progressed   = peer.Notification[progress]("notifications/progress")
	elicit       = peer.Method[question, answer]("elicitation/create")
)

type object = map[string]any

type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type initializeParams struct {
	ProtocolVersion string         `json:"protocolVersion"`
	Capabilities    object         `json:"capabilities"`
	ClientInfo      implementation `json:"clientInfo"`
}

type initializeResult struct {
	ProtocolVersion string         `json:"protocolVersion"`
	Capabilities    object         `json:"capabilities"`
	ServerInfo      implementation `json:"serverInfo"`
}

type tool struct {
	Name        string `json:"name"`
	InputSchema object `json:"inputSchema"`
}

type toolList struct {
	Tools []tool `json:"tools"`
}

type toolCall struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments,omitzero"`
	Meta      meta      `json:"_meta,omitzero"`
}

// arguments are those of all tools.
type arguments struct {
	A int `json:"a,omitzero"`
	B int `json:"b,omitzero"`
	N int `json:"n,omitzero"`
}

type meta struct {
	ProgressToken json.RawMessage `json:"progressToken,omitzero"` // a string or an integer
}

type toolResult struct {
	Content []content `json:"content"`
	IsError bool      `json:"isError,omitzero"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func textResult(text string) toolResult {
	return toolResult{Content: []content{{Type: "text", Text: text}}}
}

func (r toolResult) text() string {
	if len(r.Content) != 1 || r.Content[0].Type != "text" {
		return ""
	}
	return r.Content[0].Text
}

type progress struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Progress      float64         `json:"progress"`
	Total         float64         `json:"total,omitzero"`
	Message       string          `json:"message,omitzero"`
}

type question struct {
	Mode            string `json:"mode"`
	Message         string `json:"message"`
	RequestedSchema object `json:"requestedSchema"`
}

type answer struct {
	Action  string `json:"action"`
	Content object `json:"content,omitzero"`
}

// sumSchema is the form of what the tool "ask" wants to know.
var sumSchema = object{
	"type":       "object",
	"properties": object{"sum": object{"type": "string"}},
	"required":   []string{"sum"},
}

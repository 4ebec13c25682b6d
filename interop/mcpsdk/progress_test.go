package mcpsdk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/peer"
)

func TestSDKClientProgress(t *testing.T) {
	const steps = 20
	for _, tc := range []struct {
		token, want any // as the client gives it, as it comes back through JSON
	}{{"a token", "a token"}, {7, 7.0}} {
		t.Run(fmt.Sprint(tc.token), func(t *testing.T) {
			c := session(t, newDuetServer(t))
			params := &mcp.CallToolParams{Name: "count", Arguments: arguments{N: steps}}
			params.SetProgressToken(tc.token)
			if _, err := c.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			// The SDK may hand the result over before it: it keeps the order
			// of notifications among themselves.
			for i := range steps {
				p := receive(t, "progress", c.progress)
				if p.ProgressToken != tc.want || p.Progress != float64(i+1) || p.Total != steps || p.Message != "counting" {
					t.Errorf("progress %d = %+v", i+1, p)
				}
			}
			if got := c.wire.received(`"notifications/progress"`); len(got) != steps {
				t.Errorf("%d notifications came, want %d", len(got), steps)
			}
		})
	}
}

func TestSDKServerProgress(t *testing.T) {
	const steps = 20
	for _, token := range []string{`"a token"`, `7`} {
		t.Run(token, func(t *testing.T) {
			c := greet(t, newSDKServer(t))
			params := toolCall{Name: "count", Arguments: arguments{N: steps}, Meta: meta{json.RawMessage(token)}}
			if _, err := callTool.Call(t.Context(), c, params); err != nil {
				t.Fatal(err)
			}
			// Call has returned, so they have been handled.
			if got := len(c.progress); got != steps {
				t.Errorf("%d notifications were handled before the result, want %d", got, steps)
			}
			for i := range steps {
				p := receive(t, "progress", c.progress)
				if string(p.ProgressToken) != token || p.Progress != float64(i+1) || p.Total != steps || p.Message != "counting" {
					t.Errorf("progress %d = %+v", i+1, p)
				}
			}
		})
	}
}

// The same by the means of duet, with a token that is its own.
func TestSDKServerOnProgress(t *testing.T) {
	c := greet(t, newSDKServer(t))
	var got, want []peer.Progress
	for i := range 20 {
		want = append(want, peer.Progress{Done: float64(i + 1), Total: 20, Message: "counting"})
	}
	each := peer.OnProgress(func(p peer.Progress) { got = append(got, p) })
	if _, err := callTool.Call(t.Context(), c, toolCall{Name: "count", Arguments: arguments{N: 20}}, each); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("progress = %v, want %v", got, want)
	}
	if n := len(c.progress); n != 0 {
		t.Errorf("a handler got %d of them, want none", n)
	}
}

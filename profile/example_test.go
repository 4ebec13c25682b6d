package profile_test

import (
	"context"
	"fmt"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/profile"
)

// The client says with every request which revision it goes by.
func ExampleMCP20260728() {
	const list = peer.Method[struct{}, map[string][]string]("tools/list")
	var reg peer.Registry
	list.Handle(&reg, func(ctx context.Context, _ struct{}) (map[string][]string, error) {
		revision := peer.MetaFrom(ctx).Text("io.modelcontextprotocol/protocolVersion")
		return map[string][]string{"tools of " + revision: {"hammer"}}, nil
	})
	ctx := context.Background()
	a, b := peer.Pipe()
	server := peer.New(a, &peer.Options{Handler: &reg, Profile: profile.MCP20260728(), Accepts: true})
	defer server.Close()
	client := peer.New(b, &peer.Options{Profile: profile.MCP20260728(), Meta: peer.Meta{
		"io.modelcontextprotocol/protocolVersion":    []byte(`"2026-07-28"`),
		"io.modelcontextprotocol/clientCapabilities": []byte(`{}`),
	}})
	defer client.Close()

	fmt.Println(list.Call(ctx, client, struct{}{}))
	fmt.Println(server.Call(ctx, "roots/list", nil, nil))
	// Output:
	// map[tools of 2026-07-28:[hammer]] <nil>
	// peer: call "roots/list" (not sent): peer: the profile has calls from the dialling end only
}

package systems

import (
	"context"
	"net/http"

	"github.com/coder/websocket"
)

// CoderHandler accepts connections of coder/websocket and reads from them, as its
// documentation has it: what an idle connection costs without anything on top.
func CoderHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // Accept has answered
		}
		defer c.CloseNow()
		for {
			if _, _, err := c.Read(context.Background()); err != nil {
				return
			}
		}
	})
}

package mcpsdk_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/duetrpc/duet/interop/mcpsdk"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// socketOptions offer, or choose, the subprotocol at either end.
var socketOptions = wsconn.Options{Subprotocols: []string{mcpsdk.Subprotocol}}

// listen serves h on loopback until the end of the test, and returns its URL.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

// tapped is a transport that keeps what goes through it.
type tapped struct {
	peer.Transport
	mu       sync.Mutex
	in, sent []string
}

func (t *tapped) Read(ctx context.Context, buf []byte) ([]byte, error) {
	msg, err := t.Transport.Read(ctx, buf)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.in = append(t.in, string(msg[len(buf):]))
	}
	return msg, err
}

func (t *tapped) Write(ctx context.Context, msgs ...[]byte) error {
	t.mu.Lock()
	for _, msg := range msgs {
		t.sent = append(t.sent, string(msg))
	}
	t.mu.Unlock()
	return t.Transport.Write(ctx, msgs...)
}

// received returns what came in that contains part.
func (t *tapped) received(part string) []string { return t.those(&t.in, part) }

// wrote returns what went out that contains part.
func (t *tapped) wrote(part string) []string { return t.those(&t.sent, part) }

func (t *tapped) those(list *[]string, part string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(*list), func(msg string) bool { return !strings.Contains(msg, part) })
}

// idOf returns the id of a message as it stands there.
func idOf(t *testing.T, msg string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(msg), &m); err != nil || m.ID == nil {
		t.Fatalf("no id in %s (%v)", msg, err)
	}
	return string(m.ID)
}

package ethereum_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// patience bounds every wait. It is long, since nothing depends on it but how soon a
// broken test fails.
const patience = 20 * time.Second

// receive returns the next value of c.
func receive[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
	}
	return v
}

// serve serves h on loopback and returns the URL of its WebSocket.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

// header is an item, as newHeads has them.
type header struct {
	Number int    `json:"number"`
	Hash   string `json:"hash"`
}

func headerOf(n int) header { return header{n, strings.Repeat("f", 64)} }

// span says which headers a subscriber wants.
type span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// gethCode is the code of an error that go-ethereum's client returned, or 0.
func gethCode(err error) int {
	var e rpc.Error
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return 0
}

package load_test

import (
	"os"
	"testing"

	"github.com/duetrpc/duet/bench/load"
)

// TestMain lets the test program be the child process of Idle.
func TestMain(m *testing.M) {
	load.Child()
	os.Exit(m.Run())
}

package load_test

import (
	"testing"

	"github.com/duetrpc/duet/bench/load"
)

func TestIdle(t *testing.T) {
	m, err := load.Idle(t.Context(), 50, load.DuetHandler(50))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", m)
	if m.Wanted != 50 || m.Held != 50 || m.Reason != "" {
		t.Errorf("Idle(50) = %+v, want 50 held and no reason", m)
	}
	if m.Go <= 0 {
		t.Errorf("Idle(50).Go = %v, want some bytes", m.Go)
	}
}

// TestIdleFull shows that a server that refuses is told from one that holds.
func TestIdleFull(t *testing.T) {
	m, err := load.Idle(t.Context(), 50, load.DuetHandler(20))
	if err != nil {
		t.Fatal(err)
	}
	if m.Held != 20 || m.Reason == "" {
		t.Errorf("Idle(50) = %+v at a server that takes 20, want 20 held and a reason", m)
	}
}

package load_test

import (
	"testing"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

// TestDuet puts every kind of load on duet's own pair, for a moment.
func TestDuet(t *testing.T) {
	const d = 5 * time.Millisecond
	for _, l := range []load.Load{
		{Name: "typed", Kind: load.Typed, Size: 64, InFlight: 16},
		{Name: "typed, large", Kind: load.Typed, Size: 16 << 10, InFlight: 4},
		{Name: "raw, large", Kind: load.Raw, Size: 16 << 10, InFlight: 4},
		{Name: "raw", Kind: load.Raw, Size: 64, InFlight: 16},
		{Name: "notifications", Kind: load.Notify, Size: 64, InFlight: 2},
		{Name: "registry", Kind: load.Typed, Size: 64, InFlight: 4, Methods: 100},
		{Name: "resume", Kind: load.Typed, Size: 64, InFlight: 4, Resume: true},
		{Name: "wss", Kind: load.Typed, Size: 64, InFlight: 4, TLS: true},
		{Name: "open loop", Kind: load.Typed, Size: 64, InFlight: 64, Rate: 2000},
		{Name: "open call", Kind: load.Typed, Size: 64, InFlight: 4, Calls: 400, OpenCall: true},
	} {
		t.Run(l.Name, func(t *testing.T) {
			wire := new(load.Wire)
			pair, err := load.Duet().Open(t.Context(), load.Setup{Wire: wire, TLS: l.TLS, Resume: l.Resume, Methods: l.Methods})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := pair.Close(); err != nil {
					t.Error(err)
				}
			}()
			r, err := load.Run(t.Context(), pair, wire, l, d)
			if err != nil {
				t.Fatalf("Run(%s) = %v", l.Name, err)
			}
			if r.Calls == 0 || r.PerSecond <= 0 || r.Writes <= 0 || r.Reads <= 0 || r.Sent < float64(l.Size) {
				t.Errorf("Run(%s) = %+v, want calls, a rate, and writes, reads and bytes counted", l.Name, r)
			}
			if l.Calls > 0 && r.Calls != l.Calls {
				t.Errorf("Run(%s).Calls = %d, want %d", l.Name, r.Calls, l.Calls)
			}
			if l.Kind != load.Notify && (r.P50 <= 0 || r.P50 > r.P99 || r.P99 > r.P999 || r.P999 > r.Max) {
				t.Errorf("Run(%s) = p50 %v, p99 %v, p99.9 %v, max %v, want them positive and in order", l.Name, r.P50, r.P99, r.P999, r.Max)
			}
		})
	}
}

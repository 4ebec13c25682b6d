package load

import (
	"math"
	"slices"
	"time"
)

// Result is what one run of a load gave. Calls are notifications where the load
// is of them. Per call means both ends together.
type Result struct {
	System string `json:"system,omitempty"` // set by who runs several
	Round  int    `json:"round,omitempty"`  // likewise; from 1
	Load   Load   `json:"load"`

	Calls     int     `json:"calls"`   // answered, or handled
	Seconds   float64 `json:"seconds"` // from the first call's start to the last one's end
	PerSecond float64 `json:"perSecond"`

	// How long calls took, in microseconds; in an open loop counted from when they
	// were due. Zero for notifications.
	P50  float64 `json:"p50Micros"`
	P99  float64 `json:"p99Micros"`
	P999 float64 `json:"p999Micros"`
	Max  float64 `json:"maxMicros"`

	CPU    float64 `json:"cpuMicrosPerCall"` // user and system; 0 where the system does not tell
	Writes float64 `json:"writesPerCall"`    // on the sockets
	Reads  float64 `json:"readsPerCall"`
	Sent   float64 `json:"sentBytesPerCall"` // on the sockets, with all framing
	Allocs float64 `json:"allocsPerCall"`
	Bytes  float64 `json:"allocBytesPerCall"`

	Grown int64 `json:"grownBytes"` // of the heap, by a load with OpenCall

	Error string `json:"error,omitempty"` // why there is no result; the other figures mean nothing then
}

// Percentile is the least of sorted that at least p of all, 0 to 1, do not exceed
// (the nearest rank). It is 0 where there are none.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// setTimes sorts took and fills the figures made of it.
func (r *Result) setTimes(took []time.Duration) {
	slices.Sort(took)
	r.P50 = micros(Percentile(took, 0.5))
	r.P99 = micros(Percentile(took, 0.99))
	r.P999 = micros(Percentile(took, 0.999))
	r.Max = micros(Percentile(took, 1))
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

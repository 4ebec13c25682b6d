package load

import (
	"runtime"
	"time"
)

// meter holds what is counted for the whole process, at one moment.
type meter struct {
	mallocs, allocated uint64
	counts             Counts
	cpu                time.Duration
	at                 time.Time
}

// begin collects garbage and reads the meter before a load.
func begin(w *Wire) meter {
	runtime.GC()
	var m meter
	m.readMemory()
	m.counts = w.Counts()
	m.cpu = cpuTime()
	m.at = time.Now()
	return m
}

// end reads it after one, and fills r, whose Calls are set.
func (m meter) end(w *Wire, r *Result) {
	took := time.Since(m.at)
	cpu, counts := cpuTime(), w.Counts()
	// Reading the memory stops the world, so it comes last here and first in begin.
	var after meter
	after.readMemory()
	r.Seconds = took.Seconds()
	if r.Calls == 0 {
		return
	}
	calls := float64(r.Calls)
	r.PerSecond = calls / r.Seconds
	r.CPU = micros(cpu-m.cpu) / calls
	r.Writes = float64(counts.Writes-m.counts.Writes) / calls
	r.Reads = float64(counts.Reads-m.counts.Reads) / calls
	r.Sent = float64(counts.Bytes-m.counts.Bytes) / calls
	r.Allocs = float64(after.mallocs-m.mallocs) / calls
	r.Bytes = float64(after.allocated-m.allocated) / calls
}

// readMemory reads how much was ever allocated; what is free again counts, too.
func (m *meter) readMemory() {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m.mallocs, m.allocated = stats.Mallocs, stats.TotalAlloc
}

// live is the heap in bytes without garbage. What pools keep takes two
// collections to go.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

// report is what a run has measured, as it is written to peers.json.
type report struct {
	Environment environment   `json:"environment"`
	Command     string        `json:"command"`
	Date        time.Time     `json:"date"`
	Rounds      int           `json:"rounds"`
	Time        time.Duration `json:"timeNanos"` // of each load in each round
	Short       bool          `json:"short,omitempty"`

	Planned []string      `json:"planned"` // keys of cells, as chosen by the flags
	Results []load.Result `json:"results"`
	Idle    []idleResult  `json:"idle"`
	Failed  []string      `json:"failed,omitempty"`
}

// idleResult is what connections on which nothing happens cost.
type idleResult struct {
	System string `json:"system"`
	Round  int    `json:"round"`
	Load   string `json:"load"`
	load.Memory
}

func readReport(name string) (*report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("peers: -from: %w", err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("peers: %s: %w", name, err)
	}
	if len(r.Planned) == 0 {
		return nil, fmt.Errorf("peers: %s: no result of an earlier run", name)
	}
	return &r, nil
}

func (r *report) write(name string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// spread is a figure over all rounds.
type spread struct{ median, least, most float64 }

// figure returns a spread of what pick finds in the results of a cell, and false
// where there is none.
func (r *report) figure(key string, pick func(load.Result) float64) (spread, bool) {
	var values []float64
	for _, result := range r.Results {
		if result.Error == "" && result.System+" "+result.Load.Name == key {
			values = append(values, pick(result))
		}
	}
	return spreadOf(values)
}

// memory is figure for idle connections.
func (r *report) memory(key string, pick func(load.Memory) float64) (spread, bool) {
	var values []float64
	for _, result := range r.Idle {
		if result.System+" "+result.Load == key {
			values = append(values, pick(result.Memory))
		}
	}
	return spreadOf(values)
}

func spreadOf(values []float64) (spread, bool) {
	if len(values) == 0 {
		return spread{}, false
	}
	slices.Sort(values)
	middle := len(values) / 2
	median := values[middle]
	if len(values)%2 == 0 {
		median = (values[middle-1] + values[middle]) / 2
	}
	return spread{median, values[0], values[len(values)-1]}, true
}

// What a verdict, a table or a chart picks from a result.
func perSecond(r load.Result) float64 { return r.PerSecond }
func p50(r load.Result) float64       { return r.P50 }
func p99(r load.Result) float64       { return r.P99 }
func p999(r load.Result) float64      { return r.P999 }
func cpu(r load.Result) float64       { return r.CPU }
func writes(r load.Result) float64    { return r.Writes }
func allocs(r load.Result) float64    { return r.Allocs }

// grown is the growth of the heap for each call.
func grown(r load.Result) float64 { return float64(r.Grown) / float64(max(1, r.Calls)) }

// held and memoryOf are figures of idle connections. Memory is what the Go runtime
// uses: the system's own count has a grain of pages, and what was freed before.
func held(m load.Memory) float64     { return float64(m.Held) }
func memoryOf(m load.Memory) float64 { return m.Go }

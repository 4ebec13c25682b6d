package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

// report is the JSON file. It is written beside its place and renamed, so that
// there is either a whole one or the old one.
type report struct {
	name    string // "" where none is wanted
	partial *os.File
	content content
}

// content is what stands in it.
type content struct {
	Go         string        `json:"go"`
	OS         string        `json:"os"`
	Arch       string        `json:"arch"`
	CPUs       int           `json:"cpus"`
	GOMAXPROCS int           `json:"gomaxprocs"`
	Date       time.Time     `json:"date"` // when the run began
	Command    []string      `json:"command"`
	Results    []load.Result `json:"results"`
	Idle       []load.Memory `json:"idle"` // by round
}

// newReport makes the file that is renamed later. No name is no report.
func newReport(name string, args []string) (*report, error) {
	r := &report{name: name, content: content{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Date: time.Now().UTC().Truncate(time.Second), Command: append([]string{"go", "run", "./bench"}, args...),
	}}
	if name == "" {
		return r, nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("-json: %s is a directory", name)
	}
	var err error
	if r.partial, err = os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*"); err != nil {
		return nil, fmt.Errorf("-json: %w", err)
	}
	return r, nil
}

// write fills the file and puts it in its place.
func (r *report) write(b *bench) error {
	if r.partial == nil {
		return nil
	}
	r.content.Results, r.content.Idle = b.results, b.idle
	text, err := json.MarshalIndent(r.content, "", "  ")
	if err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	_, err = r.partial.Write(append(text, '\n'))
	err = errors.Join(err, r.partial.Chmod(0o644), r.partial.Close())
	if err == nil {
		err = os.Rename(r.partial.Name(), r.name)
	}
	if err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	r.partial = nil
	return nil
}

// discard removes what was not written whole.
func (r *report) discard() {
	if r.partial != nil {
		_ = r.partial.Close()
		_ = os.Remove(r.partial.Name())
	}
}

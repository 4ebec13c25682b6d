package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/duetrpc/duet/bench/load"
)

// report is the JSON file. What the name stands for is opened before anything is
// measured, and stays as it is until there is all to be written: a device or a link
// remains one.
type report struct {
	file    *os.File // nil where none is wanted, and when it is written
	made    bool     // there was none before
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

// newReport opens the file. No name is no report.
func newReport(name string, args []string) (*report, error) {
	r := &report{content: content{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Date: time.Now().UTC().Truncate(time.Second), Command: append([]string{"go", "run", "./bench"}, args...),
	}}
	if name == "" {
		return r, nil
	}
	_, err := os.Stat(name)
	r.made = errors.Is(err, fs.ErrNotExist)
	if r.file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
		return nil, fmt.Errorf("-json: %w", err)
	}
	return r, nil
}

// write fills the file.
func (r *report) write(b *bench) error {
	if r.file == nil {
		return nil
	}
	r.content.Results, r.content.Idle = b.results, b.idle
	text, err := json.MarshalIndent(r.content, "", "  ")
	if err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	_ = r.file.Truncate(0) // what is no regular file has no length
	_, err = r.file.Write(append(text, '\n'))
	if err = errors.Join(err, r.file.Close()); err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	r.file = nil
	return nil
}

// discard leaves things as they were where nothing was written.
func (r *report) discard() {
	if r.file != nil {
		_ = r.file.Close()
		if r.made {
			_ = os.Remove(r.file.Name())
		}
	}
}

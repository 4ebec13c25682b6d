package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems"
)

// systemEnv makes a process the child for one system; its value is the name.
const systemEnv = "DUET_BENCH_SYSTEM"

// task is what a child is asked to do, one JSON text to a line.
type task struct {
	Load load.Load     `json:"load"`
	Time time.Duration `json:"time"`
	Idle int           `json:"idle,omitempty"` // hold so many connections instead
}

// outcome is what it answers, likewise.
type outcome struct {
	Result load.Result `json:"result"`
	Memory load.Memory `json:"memory"`
	Error  string      `json:"error,omitempty"`
}

// child does the work of a child process and exits, in a process that start has
// started; in any other it returns at once.
func child() {
	name, ok := os.LookupEnv(systemEnv)
	if !ok {
		return
	}
	if err := serveTasks(context.Background(), name, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveTasks does tasks until in ends.
func serveTasks(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	system, err := find(name)
	if err != nil {
		return err
	}
	tasks, outcomes := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var t task
		if err := tasks.Decode(&t); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("peers: task: %w", err)
		}
		if err := outcomes.Encode(perform(ctx, system, t)); err != nil {
			return fmt.Errorf("peers: outcome: %w", err)
		}
	}
}

func find(name string) (load.System, error) {
	for _, system := range systems.All() {
		if system.Name == name {
			return system, nil
		}
	}
	return load.System{}, fmt.Errorf("peers: no system %q", name)
}

// perform does one task, on a connection of its own.
func perform(ctx context.Context, system load.System, t task) (o outcome) {
	fail := func(err error) outcome {
		o.Error = err.Error()
		return o
	}
	if t.Idle > 0 {
		h, err := idleHandler(system.Name, t.Idle)
		if err != nil {
			return fail(err)
		}
		if o.Memory, err = load.Idle(ctx, t.Idle, h); err != nil {
			return fail(err)
		}
		return o
	}
	opening, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	wire := new(load.Wire)
	pair, err := system.Open(opening, load.Setup{Wire: wire, TLS: t.Load.TLS, Methods: t.Load.Methods})
	if err != nil {
		return fail(err)
	}
	o.Result, err = load.Run(ctx, pair, wire, t.Load, t.Time)
	if closed := pair.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fail(err)
	}
	return o
}

func idleHandler(system string, n int) (http.Handler, error) {
	switch system {
	case systems.DuetName:
		return load.DuetHandler(n), nil
	case systems.CoderName:
		return systems.CoderHandler(), nil
	}
	return nil, fmt.Errorf("peers: idle connections of %q are not measured", system)
}

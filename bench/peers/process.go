package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// process is the child process of one system, from outside. It does nothing while
// others are measured.
type process struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	tasks    *json.Encoder
	outcomes *json.Decoder
}

// start starts this program again as the child for a system.
func start(ctx context.Context, system string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), systemEnv+"="+system)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, stdin, json.NewEncoder(stdin), json.NewDecoder(stdout)}, nil
}

// do lets the child do a task. After an error that is not the task's own the child
// is of no use any more.
func (p *process) do(t task, limit time.Duration) (outcome, error) {
	var o outcome
	// A child that is stuck is killed, which ends the reading here.
	timer := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.tasks.Encode(t); err != nil {
		return o, fmt.Errorf("the child process has died: %w", err)
	}
	if err := p.outcomes.Decode(&o); err != nil {
		return o, fmt.Errorf("the child process has died: %w", err)
	}
	if o.Error != "" {
		return o, errors.New(o.Error)
	}
	return o, nil
}

// stop ends the child and waits for it.
func (p *process) stop() {
	_ = p.stdin.Close() // it ends by that, if it has nothing to do
	timer := time.AfterFunc(2*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
}

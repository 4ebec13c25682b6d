package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// childEnv makes a process the child of Idle; its value is "ADDRESS COUNT".
// paceEnv makes it the pacemaker of an open loop.
const (
	childEnv = "DUET_BENCH_HOLD"
	paceEnv  = "DUET_BENCH_PACE"
)

// dialers is how many connections the child opens at once.
const dialers = 32

// childReport is what the child says: when it has opened what it can, and, once
// its input ends, what is still open.
type childReport struct {
	Count  int    `json:"count"`
	Reason string `json:"reason,omitempty"` // why there are not more
}

// Child does the work of a child process and exits, in a process that Idle or an
// open loop started; in any other it returns at once. Call it first in main, and in
// TestMain.
func Child() {
	if _, ok := os.LookupEnv(paceEnv); ok {
		beat(os.Stdout)
		os.Exit(0)
	}
	task, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	if err := hold(task, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hold opens the connections of task, reports, and again when in ends.
func hold(task string, in io.Reader, out io.Writer) error {
	address, count, ok := strings.Cut(task, " ")
	n, err := strconv.Atoi(count)
	if !ok || err != nil || n < 1 {
		return fmt.Errorf("load: %s=%q is not ADDRESS COUNT", childEnv, task)
	}
	// Every dialer goes on until all are taken or one fails, each for itself: at a
	// full server the others may still have got a place.
	var (
		report childReport
		taken  atomic.Int64 // of n, begun
		alive  atomic.Int64
		failed = make(chan error, dialers)
		group  sync.WaitGroup
	)
	for range min(dialers, n) {
		group.Go(func() {
			for taken.Add(1) <= int64(n) {
				c, err := openBare(address)
				if err != nil {
					failed <- err
					return
				}
				alive.Add(1)
				go func() {
					defer alive.Add(-1)
					c.answerPings()
				}()
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		report.Reason = err.Error()
	default:
	}
	report.Count = int(alive.Load())
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(report); err != nil {
		return err
	}
	// The end of the input is the question; it also comes when the parent dies.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	return encoder.Encode(childReport{Count: int(alive.Load())})
}

// child is the process from outside.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

// startChild starts this program again, with the task in its environment.
func startChild(ctx context.Context, address string, n int) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("load: idle: %w", err)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", childEnv, address, n))
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	c := &child{cmd: cmd}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("load: idle: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("load: idle: %w", err)
	}
	c.lines = bufio.NewReader(stdout)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("load: idle: child process: %w", err)
	}
	return c, nil
}

// opened waits until the child has opened what it can.
func (c *child) opened() (childReport, error) { return c.report() }

// alive asks the child what is still open; it ends after that.
func (c *child) alive() (int, error) {
	_ = c.stdin.Close()
	r, err := c.report()
	return r.Count, err
}

// report reads the next line the child wrote.
func (c *child) report() (r childReport, err error) {
	line, err := c.lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended, which it does where main does not begin with load.Child")
	}
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		return r, fmt.Errorf("load: idle: child process: %w", err)
	}
	return r, nil
}

// stop ends the child, if it has not ended, and waits for it.
func (c *child) stop() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

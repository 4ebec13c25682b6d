package load

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// pace is how often an open loop looks at what is due: what it adds to the time of
// a call at most.
const pace = 250 * time.Microsecond

// A pacemaker wakes an open loop. Go's own timers are no finer than a millisecond
// on a machine that waits, and a thread that sleeps takes its processor from the
// system that is measured; so another process sleeps, and says so by a byte.
type pacemaker struct {
	cmd  *exec.Cmd
	beat io.Reader
	buf  [256]byte
}

func startPacemaker(ctx context.Context) (*pacemaker, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("load: pacemaker: %w", err)
	}
	p := &pacemaker{cmd: exec.CommandContext(ctx, exe)}
	p.cmd.Env = append(os.Environ(), paceEnv+"=1")
	if p.beat, err = p.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("load: pacemaker: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("load: pacemaker: %w", err)
	}
	p.wait() // it is there
	return p, nil
}

// wait returns at the next beat, or after a while where none comes.
func (p *pacemaker) wait() {
	if _, err := p.beat.Read(p.buf[:]); err != nil {
		time.Sleep(pace)
	}
}

func (p *pacemaker) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed
}

// beat is the pacemaker's process. It ends when nobody listens any more.
func beat(out io.Writer) {
	for {
		nap(pace)
		if _, err := out.Write([]byte{0}); err != nil {
			return
		}
	}
}

package wire

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// DefaultProbe is sent after each case that leaves the connection up.
const DefaultProbe = `{"jsonrpc":"2.0","method":"echo","params":["probe"],"id":"__probe"}`

// parallel is how many cases RunAll plays at once. A case mostly waits.
const parallel = 32

// Runner plays cases against one server. Only URL must be set. It is safe for
// concurrent use as long as its fields do not change.
type Runner struct {
	URL    string      // ws:// or wss://
	Header http.Header // added to the handshake, such as Origin, Authorization or Sec-WebSocket-Protocol

	// Offers lists the methods and properties of the server beyond the base
	// methods. A case that requires another one is skipped.
	Offers []string

	// Probe is the call whose answer proves that the connection survived;
	// empty means DefaultProbe. It needs an id that no case uses. The answer
	// must be a success whose result equals the params of the probe; where it
	// has no params any result will do.
	Probe string

	Timeout time.Duration // a case and its handshake must be over in this time; 0 means 5 s
	Quiet   time.Duration // no message may come for so long after the probe's answer; 0 means 150 ms
}

// Outcome is what became of one case.
type Outcome struct {
	Case    string // ID of the case
	Skipped bool   // something it requires is not offered; it neither passed nor failed
	Pass    bool

	Alternative int    // 0: the first expectation was met; n: the n-th alternative was
	Why         string // of that alternative

	Problem  string   // what was wrong, with the messages that came; empty unless the case failed
	Messages []string // messages of the server in order, without the answer to the probe
}

// Run plays c on a connection of its own. An ended ctx ends the case at once,
// as failed. Every fault, also one of the network, is told in the Outcome.
func (r *Runner) Run(ctx context.Context, c *Case) Outcome {
	out := Outcome{Case: c.ID}
	for _, need := range c.Requires {
		if !slices.Contains(r.Offers, need) {
			out.Skipped = true
			return out
		}
	}
	p, err := probeOf(cmp.Or(r.Probe, DefaultProbe))
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, 5*time.Second))
	defer cancel()
	cl, err := dial(ctx, r.URL, r.Header)
	if err != nil {
		out.Problem = fmt.Sprintf("handshake: %v", err)
		return out
	}
	v := &conversation{
		ctx: ctx, quiet: cmp.Or(r.Quiet, 150*time.Millisecond), probe: p, client: cl,
		events:   make(chan event, 1024), // so that a talkative server does not stop reading us
		outcomes: c.outcomes(), caps: captures{},
	}
	// over lets the reader go when its events are wanted no more.
	over := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { v.read(over) })
	v.play(c.Send)
	v.settle()
	// Judged before leaving: what the server says to our close is not part of
	// the case.
	n := v.judge(c.Forbid)
	for _, m := range v.messages {
		out.Messages = append(out.Messages, m.text)
	}
	out.Problem = v.report()
	if out.Pass = out.Problem == ""; out.Pass {
		out.Alternative, out.Why = n, v.outcomes[n].Why
	}
	v.leave()
	close(over)
	reader.Wait()
	return out
}

// RunAll plays all cases, many at a time, and returns their outcomes in the
// order of cases.
func (r *Runner) RunAll(ctx context.Context, cases []Case) []Outcome {
	outcomes := make([]Outcome, len(cases))
	// Slots and not workers, so that outcomes need no sorting afterwards.
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i := range cases {
		slots <- struct{}{}
		all.Go(func() {
			outcomes[i] = r.Run(ctx, &cases[i])
			<-slots
		})
	}
	all.Wait()
	return outcomes
}

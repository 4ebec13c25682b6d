package peer

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/duetrpc/duet/codec"
)

var (
	// ErrAnswered is returned for progress after the handler has returned.
	ErrAnswered = errors.New("peer: the call is answered")

	// ErrNotIncreasing is returned for progress that is not more than what was
	// reported before, or is no finite number.
	ErrNotIncreasing = errors.New("peer: progress does not increase")
)

// Reporter tells the caller of a handler how far it is. Its methods may be used
// concurrently, and after the handler has returned they do nothing; nor do those of a
// nil one.
type Reporter struct {
	c       *Conn
	ctx     context.Context
	dialect *ProgressDialect
	token   []byte

	mu     sync.Mutex
	title  string
	done   float64
	begun  bool // something was sent
	over   bool
	every  time.Duration
	next   time.Time   // not sent before
	latest *Progress   // waits for that
	timer  *time.Timer // for it; nil until needed
}

// ProgressFrom returns what a handler reports its progress with. It reports false, with a
// nil Reporter, where its caller did not ask for progress, or the profile has none, and for a context
// that is not that of a call's running handler.
func ProgressFrom(ctx context.Context) (*Reporter, bool) {
	own := requestOf(ctx)
	if own == nil || own.c.opts.Profile.Progress.Off {
		return nil, false
	}
	d := &own.c.opts.Profile.Progress
	places, _ := d.Places()
	var p *Reporter
	withRequest(ctx, func(r *incoming) {
		if token := FindToken(r.req.Params, places); token != nil && !own.notification {
			p = &Reporter{c: own.c, ctx: own, dialect: d, title: r.req.Method, token: slices.Clone(token)}
		}
	})
	if p == nil {
		return nil, false
	}
	c := own.c
	c.mu.Lock()
	r := own.in
	if r == nil {
		c.mu.Unlock()
		return nil, false
	}
	if !r.reporter.CompareAndSwap(nil, p) {
		p = r.reporter.Load()
	}
	c.mu.Unlock()
	// The answer ends the reporter it sees; one that it cannot have seen sees here that
	// the handler has returned.
	if own.isOver() {
		p.finish(true)
	}
	return p, true
}

// Every bounds how often progress leaves: at most once in d. What is reported
// sooner waits, the newest takes the place of those before, and the last one leaves
// before the answer does. Zero, as in the beginning, is no bound. It returns p.
func (p *Reporter) Every(d time.Duration) *Reporter {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every = d
	return p
}

// Title is what LSP shows above the progress; without it that is the name of the method.
// After the first report it comes too late. It returns p.
func (p *Reporter) Title(text string) *Reporter {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.title = text
	return p
}

// Report tells how far the call is. It waits while the queue to the other end is full,
// at most until the handler's context ends. The error is ErrAnswered,
// ErrNotIncreasing, or why nothing can be sent.
func (p *Reporter) Report(u Progress) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.Done == 0 {
		u.Done = p.done + 1
	}
	switch {
	case p.over:
		return ErrAnswered
	case p.ctx.Err() != nil:
		return contextError(p.ctx)
	case (p.begun || p.latest != nil) && u.Done <= p.done, !finite(u.Done), !finite(u.Total):
		return ErrNotIncreasing
	}
	p.done = u.Done
	if now := time.Now(); now.Before(p.next) {
		p.latest = &u
		if p.timer == nil {
			p.timer = time.AfterFunc(p.next.Sub(now), p.due)
		}
		return nil
	}
	return p.send(p.ctx, u)
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// due sends what waited for its time.
func (p *Reporter) due() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if u := p.latest; u != nil && !p.over {
		_ = p.send(p.ctx, *u) // who reports next is told
	}
}

// send sends u now. p.mu is held.
func (p *Reporter) send(ctx context.Context, u Progress) error {
	if p.every > 0 {
		p.next = time.Now().Add(p.every)
	}
	p.latest = nil
	if p.dialect.WorkDone && !p.begun {
		begin := []codec.Member{textMember("kind", "begin"), textMember("title", p.title)}
		if u.Total > 0 { // LSP 3.17 "Work Done Progress": without one here, later ones may be ignored
			begin = append(begin, codec.Member{Name: "percentage", Value: []byte("0")})
		}
		if err := p.notify(ctx, begin); err != nil {
			return err
		}
	}
	p.begun = true
	return p.notify(ctx, p.dialect.members(u))
}

// notify sends what members say about the call.
func (p *Reporter) notify(ctx context.Context, members []codec.Member) error {
	method, token := p.dialect.Notification()
	params := []codec.Member{{Name: token, Value: p.token}}
	if p.dialect.Flat {
		params = append(params, members...)
	} else {
		params = append(params, codec.Member{Name: "value", Value: codec.AppendObject(nil, nil, members)})
	}
	return p.c.send(ctx, nil, &text{method: method, value: json.RawMessage(codec.AppendObject(nil, nil, params))})
}

// members is how u is written.
func (d *ProgressDialect) members(u Progress) []codec.Member {
	var members []codec.Member
	number := func(name string, f float64) {
		members = append(members, codec.Member{Name: name, Value: strconv.AppendFloat(nil, f, 'f', -1, 64)})
	}
	switch {
	case !d.WorkDone:
		number("progress", u.Done)
		if u.Total != 0 {
			number("total", u.Total)
		}
	default:
		members = append(members, textMember("kind", "report"))
		if u.Total > 0 { // LSP 3.17 "Work Done Progress": 0 to 100
			number("percentage", math.Floor(min(max(100*u.Done/u.Total, 0), 100)))
		}
	}
	if u.Message != "" {
		members = append(members, textMember("message", u.Message))
	}
	return members
}

func textMember(name, value string) codec.Member {
	return codec.Member{Name: name, Value: codec.AppendString(nil, value)}
}

// finish sends what is still to be said before the answer, and ends p. With silent
// nothing is.
func (p *Reporter) finish(silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.latest; u != nil && !p.over && !silent {
		_ = p.send(p.c.ctx, *u)
	}
	if p.begun && p.dialect.WorkDone && !p.over && !silent {
		_ = p.notify(p.c.ctx, []codec.Member{textMember("kind", "end")})
	}
	p.over, p.latest = true, nil
	if p.timer != nil {
		p.timer.Stop()
	}
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

// lane is one direction between a client and the server: what one end asks of the other,
// and what of that arrives there. Both ends are in this process, so both know it.
type lane struct {
	name    string
	back    bool // it is the server that asks
	author  *author
	resumed bool
	tally   *tally
	other   *lane // the opposite direction

	calls flow // as they run
	notes flow
}

// newLanes are the two directions of a client.
func newLanes(s settings, client int, t *tally) (up, down *lane) {
	direction := func(name string, stream int) *lane {
		return &lane{
			name: name, resumed: s.resume, tally: t, author: newAuthor(s.seed, uint64(stream)),
			calls: flow{anyOrder: true},
		}
	}
	up = direction("client "+nameOf(client)+" to server, ", 2*client)
	down = direction("server to client "+nameOf(client)+", ", 2*client+1)
	up.other, down.other, down.back = down, up, true
	return up, down
}

// handle registers what is done for the lane that of returns.
func handle(reg *peer.Registry, of func(context.Context) *lane) {
	work.Handle(reg, func(ctx context.Context, in task) (answer, error) { return of(ctx).work(ctx, in) })
	tell.Handle(reg, func(ctx context.Context, in task, send func(item) error) (answer, error) {
		return of(ctx).tell(ctx, in, send)
	})
	note.Handle(reg, func(ctx context.Context, in item) error {
		l := of(ctx)
		if !in.intact() {
			l.tally.bad(l.name + "note")
		}
		l.notes.got(in.Number)
		l.tally.notifications.Add(1)
		return nil
	})
	ready.Handle(reg, func(context.Context, struct{}) (bool, error) { return true, nil })
}

// work takes a while, or calls back, and answers.
func (l *lane) work(ctx context.Context, in task) (answer, error) {
	l.tally.open.Add(1)
	defer l.tally.open.Add(-1)
	if !in.intact() {
		l.tally.bad(l.name + "work")
	}
	l.calls.got(in.Number)
	if err := pause(ctx, time.Duration(in.Pause)*time.Millisecond); err != nil {
		return answer{}, err
	}
	if in.Back {
		caller, _ := peer.CallerFrom(ctx)
		l.other.call(ctx, caller, false)
	}
	return answer{in.Number, in.Sum}, nil
}

// tell sends numbered items.
func (l *lane) tell(ctx context.Context, in task, send func(item) error) (answer, error) {
	l.tally.open.Add(1)
	defer l.tally.open.Add(-1)
	for n := range in.Items {
		if err := send(l.author.item(uint64(n))); err != nil {
			return answer{}, err
		}
	}
	return answer{in.Number, in.Sum}, nil
}

// call makes a call and judges the answer.
func (l *lane) call(ctx context.Context, c peer.Caller, back bool) {
	l.tally.open.Add(1)
	defer l.tally.open.Add(-1)
	in := task{item: l.author.item(l.calls.issue()), Back: back}
	if l.author.below(4) == 0 {
		in.Pause = l.author.below(20)
	}
	out, err := work.Call(ctx, c, in)
	l.judge(in, out, err)
}

// judge counts how a call went. ctx was not to end it.
func (l *lane) judge(in task, out answer, err error) {
	switch {
	case err != nil:
		if l.tally.fail(l.name+"call", err) == pending.NotSent {
			l.calls.deny(in.Number)
		}
	case out != answer{in.Number, in.Sum}:
		l.tally.bad(l.name + "call")
	case l.back:
		l.tally.callbacks.Add(1)
	default:
		l.tally.calls.Add(1)
	}
}

// cancel makes a call and gives it up after a while: it is answered, or cancelled.
func (l *lane) cancel(ctx context.Context, c peer.Caller) {
	l.tally.open.Add(1)
	defer l.tally.open.Add(-1)
	in := task{item: l.author.item(l.calls.issue()), Pause: l.author.below(40)}
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	timer := time.AfterFunc(time.Duration(l.author.below(30))*time.Millisecond, giveUp)
	defer timer.Stop()
	out, err := work.Call(ctx, c, in)
	var failed *peer.CallError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &failed) {
		l.judge(in, out, err)
		return
	}
	l.tally.cancelled.Add(1)
	if failed.Sent == pending.NotSent {
		l.calls.deny(in.Number)
	}
}

// listen takes a stream, and now and then leaves it early.
func (l *lane) listen(ctx context.Context, c peer.Caller) {
	l.tally.open.Add(1)
	defer l.tally.open.Add(-1)
	in := task{item: l.author.item(0), Items: 10 + l.author.below(50)}
	leave := -1
	if l.author.below(10) == 0 {
		leave = l.author.below(in.Items)
	}
	items := &flow{issued: uint64(in.Items)}
	s := tell.Call(ctx, c, in)
	n := 0
	for got, err := range s.All() {
		if err != nil {
			break // which Result has, too
		}
		if !got.intact() {
			l.tally.bad(l.name + "item")
		}
		items.got(got.Number)
		l.tally.items.Add(1)
		if n++; n == leave {
			break
		}
	}
	if n == leave {
		l.tally.settle(l.name+"stream, left", items, false)
		return
	}
	out, err := s.Result()
	switch {
	case err != nil:
		l.tally.fail(l.name+"stream", err)
	case out != answer{in.Number, in.Sum}:
		l.tally.bad(l.name + "stream")
	}
	l.tally.settle(l.name+"stream", items, err == nil)
}

// notify sends the next notification, and again while it is not taken: it is to arrive
// once. The way is asked for each time, since it may be another one.
func (l *lane) notify(ctx context.Context, way func(context.Context) (peer.Caller, error)) {
	next := l.author.item(l.notes.issue())
	for {
		c, err := way(ctx)
		if err == nil {
			if err = note.Notify(ctx, c, next); err == nil {
				return
			}
			if l.resumed {
				l.tally.gap(l.name+"note", err)
			}
		}
		if pause(ctx, 5*time.Millisecond) != nil {
			l.notes.deny(next.Number)
			return
		}
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package main

import (
	"context"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
)

// way is how a lane's asking end reaches the other one.
type way func(context.Context) (peer.Caller, error)

// load keeps a lane busy until stop ends. What has begun then comes to its end; ctx ends
// what does not.
func (l *lane) load(stop, ctx context.Context, w way, running *sync.WaitGroup) {
	every := func(least, most time.Duration, f func(peer.Caller)) {
		running.Go(func() {
			for stop.Err() == nil {
				if c, err := w(stop); err == nil {
					f(c)
				}
				_ = pause(stop, least+time.Duration(l.author.below(int(most-least))))
			}
		})
	}
	for range 4 {
		every(5*time.Millisecond, 25*time.Millisecond, func(c peer.Caller) {
			l.call(ctx, c, l.author.below(4) == 0)
		})
	}
	every(20*time.Millisecond, 60*time.Millisecond, func(c peer.Caller) { l.cancel(ctx, c) })
	every(20*time.Millisecond, 80*time.Millisecond, func(c peer.Caller) { l.listen(ctx, c) })
	running.Go(func() {
		for stop.Err() == nil {
			l.notify(ctx, w)
			_ = pause(stop, time.Duration(5+l.author.below(10))*time.Millisecond)
		}
	})
}

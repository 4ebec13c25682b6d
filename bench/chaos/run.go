package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
)

// bound is how long everything may take that has to come to its end once nothing goes
// wrong any more.
const bound = 20 * time.Second

// world is a server, and clients behind proxies.
type world struct {
	settings
	tally   *tally
	server  *server
	proxies []*proxy
	clients []*client
	lanes   [][2]*lane // of each client: up, and down
	before  int        // goroutines
}

// newWorld starts all of it.
func newWorld(s settings) (w *world, err error) {
	w = &world{settings: s, tally: newTally(), before: runtime.NumGoroutine()}
	defer func() {
		if err != nil {
			w.end()
		}
	}()
	ups := make(map[string]*lane)
	for i := range s.clients {
		up, down := newLanes(s, i, w.tally)
		ups[nameOf(i)] = up
		w.lanes = append(w.lanes, [2]*lane{up, down})
	}
	if w.server, err = newServer(s.resume, ups, w.tally); err != nil {
		return w, err
	}
	for i := range s.clients {
		p, err := newProxy(w.server.listener.Addr().String(), func(connection int) script { return plan(s.seed, i, connection) }, w.tally.cut)
		if err != nil {
			return w, err
		}
		w.proxies = append(w.proxies, p)
		buffer := []int64{4 << 10, 32 << 10, 4 << 20}[i%3]
		c, err := newClient(p.address(), nameOf(i), s.resume, buffer, w.lanes[i][1])
		if err != nil {
			return w, err
		}
		w.clients = append(w.clients, c)
	}
	return w, nil
}

// play has things go wrong until ctx ends or the time is over, and everything come to its
// end after that.
func (w *world) play(ctx context.Context) {
	stop, calm := context.WithTimeout(ctx, w.duration)
	defer calm()
	all, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	var running sync.WaitGroup
	for i, c := range w.clients {
		w.lanes[i][0].load(stop, all, c.caller, &running)
		w.lanes[i][1].load(stop, all, w.back(i), &running)
	}
	<-stop.Done()
	for _, p := range w.proxies {
		p.calm()
	}
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		w.settle(all)
	case <-time.After(bound):
		w.tally.hang("calls and streams", int(w.tally.open.Load()), fmt.Errorf("open after %v", bound))
		giveUp()
	}
}

// back is the way from the server to a client.
func (w *world) back(client int) way {
	return func(ctx context.Context) (peer.Caller, error) { return w.server.conn(ctx, nameOf(client)) }
}

// settle waits for what is on its way, and judges what has arrived. A call passes no
// notification by, so the answer to one more says that all have arrived.
func (w *world) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var last sync.WaitGroup
	for i, c := range w.clients {
		for at, to := range []way{c.caller, w.back(i)} {
			l := w.lanes[i][at]
			last.Go(func() {
				if err := l.last(ctx, to); err != nil {
					w.tally.hang(l.name+"the last call", 1, err)
				}
			})
		}
	}
	last.Wait()
	for deadline := time.Now().Add(bound); w.tally.open.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) { // handlers of calls that were given up
			w.tally.hang("handlers", int(w.tally.open.Load()), fmt.Errorf("running after %v", bound))
			break
		}
	}
	for _, both := range w.lanes {
		for _, l := range both {
			w.tally.settle(l.name+"calls", &l.calls, false)
			w.tally.settle(l.name+"notes", &l.notes, true)
		}
	}
}

// last makes one more call, and where nothing is resumed another one if that fails.
func (l *lane) last(ctx context.Context, to way) error {
	for {
		c, err := to(ctx)
		if err == nil {
			_, err = ready.Call(ctx, c, struct{}{})
		}
		if err == nil || l.resumed || ctx.Err() != nil {
			return err
		}
	}
}

// end shuts everything down.
func (w *world) end() {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	var group sync.WaitGroup
	for _, c := range w.clients {
		group.Go(func() {
			if err := c.close(ctx); err != nil {
				w.tally.hang("shutdown of a client", 1, err)
			}
		})
	}
	group.Wait()
	if w.server != nil {
		if err := w.server.close(ctx); errors.Is(err, context.DeadlineExceeded) {
			w.tally.hang("shutdown of the server", 1, err)
		}
	}
	for _, p := range w.proxies {
		p.close()
	}
}

// leftovers counts the goroutines and sessions that outlive the world, which have some
// seconds to go.
func (w *world) leftovers(stderr io.Writer) {
	goroutines, sessions := 0, 0
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		goroutines, sessions = max(0, runtime.NumGoroutine()-w.before), w.server.open()
		if goroutines+sessions == 0 {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	w.tally.leave("goroutines", goroutines)
	w.tally.leave("sessions", sessions)
	if w.verbose {
		_ = pprof.Lookup("goroutine").WriteTo(stderr, 1)
	}
}

package resume_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// An evicted session is gone at both ends: none goes on counting where the other begins.
func TestEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		add.Handle(&reg, sum)
		w := newWorld(t, &resume.Options{PrincipalParked: 1}, &peer.Options{Handler: &reg})
		done := map[*peer.Client]<-chan error{}
		connect := func(principal string) *peer.Client {
			w.principal = principal
			c := w.client(nil, nil)
			done[c] = call(c, "slow")
			<-started
			return c
		}
		a, b, other := connect("somebody"), connect("somebody"), connect("somebody else")
		defer w.end(a)
		defer w.end(b)
		defer w.end(other)
		w.setDown(true)
		for _, s := range w.all() {
			s.cut()
			synctest.Wait() // one after the other
		}
		stats := w.sessions.Stats()
		if stats.Parked != 2 || stats.Lost[resume.Evicted] != 1 {
			t.Errorf("with a share of one session each: %+v", stats)
		}
		w.setDown(false)
		var gap *resume.GapError
		err := <-done[a]
		if !errors.As(err, &gap) || gap.Reason != resume.Unknown {
			t.Errorf("the call of the evicted session: %v", err)
		}
		if got, err := add.Call(t.Context(), a, []int{1, 2}); got != 3 || err != nil {
			t.Errorf("after that: %d, %v", got, err)
		}
		for _, c := range []*peer.Client{b, other} {
			select {
			case err := <-done[c]:
				t.Errorf("another session lost its turn: %v", err)
			default:
			}
		}
	})
}

// Who parks more than others loses first, at the bound of all together.
func TestEvictsLargest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{Parked: 4}, nil)
		var clients []*peer.Client
		connect := func(principal string) {
			w.principal = principal
			c := w.client(nil, nil)
			if _, err := c.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
			time.Sleep(time.Second)
		}
		connect("one user")
		for range 5 {
			connect("a greedy one")
		}
		connect("another user")
		w.setDown(true)
		conns := w.allConns()
		for _, s := range w.all() {
			s.cut()
			synctest.Wait()
		}
		if s := w.sessions.Stats(); s.Parked != 4 || s.Lost[resume.Evicted] != 3 {
			t.Errorf("stats: %+v", s)
		}
		for _, i := range []int{0, 6} {
			if conns[i].Err() != nil {
				t.Errorf("another user lost a session to the greedy one: %v", conns[i].Err())
			}
		}
		for _, c := range clients {
			w.end(c)
		}
	})
}

// Bytes that are kept count as well.
func TestEvictsByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &resume.Options{PrincipalBytes: 1000}, nil)
		c, _ := w.connected()
		defer w.end(c)
		w.setDown(true)
		conn := w.conn()
		w.socket().deafen()
		if err := conn.Notify(t.Context(), "n", []string{strings.Repeat("x", 2000)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.cut()
		<-conn.Done()
		var gap *resume.GapError
		if !errors.As(conn.Err(), &gap) || gap.Reason != resume.Evicted {
			t.Errorf("over the bytes of a principal: %v", conn.Err())
		}
	})
}

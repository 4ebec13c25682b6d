package resume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/wsconn"
)

// raw is the dialling end of the protocol, by hand.
func (w *world) raw() *peertest.Raw {
	t, _ := w.dial(w.principal)
	return peertest.NewRaw(w.t, t)
}

// opened begins a session by hand, and returns its id.
func opened(t *testing.T, r *peertest.Raw) string {
	t.Helper()
	r.Send("open")
	words := strings.Fields(r.Receive())
	if len(words) != 3 || words[0] != "opened" || len(words[1]) != 32 || words[2] != "120000" {
		t.Fatalf("opened with %q", words)
	}
	r.Send("ack 0")
	return words[1]
}

// closed wants a raw end to be closed with a code.
func closed(t *testing.T, r *peertest.Raw, code int) {
	t.Helper()
	var end *wsconn.CloseError
	if err := r.Ended(); !errors.As(err, &end) || end.Code != code {
		t.Errorf("closed with %v, want %d", err, code)
	}
}

func note(n int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":[%d]}`, n) }

// notes is a connection's handler that counts what it gets.
func notes() (*peer.Options, func() []int) {
	var reg peer.Registry
	got := make(chan int, 1000)
	var all []int
	peer.Notification[[]int]("n").Handle(&reg, func(_ context.Context, in []int) error { got <- in[0]; return nil })
	return &peer.Options{Handler: &reg}, func() []int {
		for {
			select {
			case n := <-got:
				all = append(all, n)
			default:
				return all
			}
		}
	}
}

func TestClaims(t *testing.T) {
	// Each has a session with 3 messages from the dialling end, of which it knows 3, and 2
	// from the accepting end.
	for _, test := range []struct {
		name      string
		principal string
		line      string // ID stands for the id
		code      int    // 0: is resumed
		lives     bool   // whether the session does after that
	}{
		{"as it should be", "somebody", "resume ID 1 2", 0, true},
		{"with less", "somebody", "resume ID 1 1", 0, true},
		{"of another principal", "somebody else", "resume ID 1 2", 4102, true},
		{"of nobody", "", "resume ID 1 2", 4102, true},
		{"another id", "somebody", "resume 00000000000000000000000000000000 1 2", 4102, true},
		{"an upper case id", "somebody", "resume UPPER 1 2", 1002, true},
		{"a count from the future", "somebody", "resume ID 1 3", 4102, false},
		{"a count from the past", "somebody", "resume ID 1 0", 4102, false},
		{"a handshake from the past", "somebody", "resume ID 0 2", 4101, true},
		{"a short id", "somebody", "resume 00 1 2", 1002, true},
		{"a count too few", "somebody", "resume ID 1", 1002, true},
		{"a count too many", "somebody", "resume ID 1 2 3", 1002, true},
		{"a leading zero", "somebody", "resume ID 01 2", 1002, true},
		{"a negative count", "somebody", "resume ID 1 -1", 1002, true},
		{"a huge count", "somebody", "resume ID 1 9223372036854775808", 1002, true},
		{"an endless count", "somebody", "resume ID 1 " + strings.Repeat("9", 100), 1002, true},
		{"two spaces", "somebody", "resume  ID 1 2", 1002, true},
		{"another word", "somebody", "reopen ID 1 2", 1002, true},
		{"no handshake", "somebody", note(4), 1002, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, got := notes()
				w := newWorld(t, nil, opts)
				r := w.raw()
				id := opened(t, r)
				r.Send(note(1), note(2), note(3))
				synctest.Wait()
				conn := w.conn()
				for i := range 2 {
					if err := conn.Notify(t.Context(), "n", []int{i}); err != nil {
						t.Fatal(err)
					}
				}
				r.Want(note(0), note(1))
				r.Send("ack 1")
				r.Want("ack 3")
				w.cut()
				synctest.Wait()

				w.principal = test.principal
				again := w.raw()
				again.Send(strings.NewReplacer("ID", id, "UPPER", strings.ToUpper(id)).Replace(test.line))
				if test.code != 0 {
					closed(t, again, test.code)
				} else {
					again.Want("resumed 3")
					if strings.HasSuffix(test.line, " 1") {
						again.Want(note(1))
					}
					again.Send(note(4))
					synctest.Wait()
					if all := got(); len(all) != 4 || all[3] != 4 {
						t.Errorf("arrived: %v", all)
					}
					if s := w.sessions.Stats(); s.Parked != 0 || s.Resumed != 1 {
						t.Errorf("stats: %+v", s)
					}
				}
				synctest.Wait()
				if lives := conn.Context().Err() == nil; lives != test.lives {
					t.Errorf("the session lives: %v, want %v (%v)", lives, test.lives, conn.Err())
				}
				_ = conn.Close()
				<-conn.Done()
			})
		})
	}
}

// Of two sockets that claim one session the newer wins, and the older is closed with its own
// code. A handshake that is heard a second time is not heeded.
func TestNewerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, got := notes()
		w := newWorld(t, nil, opts)
		first := w.raw()
		id := opened(t, first)
		first.Send(note(1))
		synctest.Wait()
		conn := w.conn()

		second := w.raw()
		second.Send("resume " + id + " 1 0")
		second.Want("resumed 1")
		synctest.Wait()
		closed(t, first, 4101)

		third := w.raw()
		third.Send("resume " + id + " 2 0")
		third.Want("resumed 1")
		synctest.Wait()
		closed(t, second, 4101)

		again := w.raw()
		again.Send("resume " + id + " 1 0")
		closed(t, again, 4101)
		again = w.raw()
		again.Send("resume " + id + " 2 0")
		closed(t, again, 4101)

		third.Send(note(2))
		synctest.Wait()
		if all := got(); len(all) != 2 || conn.Err() != nil {
			t.Errorf("arrived: %v, %v", all, conn.Err())
		}
		if s := w.sessions.Stats(); s.Open != 1 || s.Parked != 0 || s.Resumed != 2 || s.Refused != 2 {
			t.Errorf("stats: %+v", s)
		}
		_ = conn.Close()
		closed(t, third, 1000)
		<-conn.Done()
	})
}

// A second loss in the middle of what is sent again loses nothing: the third handshake
// tells anew what is missing.
func TestLostWhileSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		r := w.raw()
		id := opened(t, r)
		synctest.Wait()
		conn := w.conn()
		for i := range 5 {
			_ = conn.Notify(t.Context(), "n", []int{i})
		}
		r.Want(note(0), note(1)) // and the rest is lost
		w.cut()
		r = w.raw()
		r.Send("resume " + id + " 1 2")
		r.Want("resumed 0", note(2), note(3))
		w.cut()
		_ = conn.Notify(t.Context(), "n", []int{5}) // meanwhile
		synctest.Wait()
		r = w.raw()
		r.Send("resume " + id + " 2 4")
		r.Want("resumed 0", note(4), note(5))
		synctest.Wait()
		if more := r.Waiting(); len(more) != 0 {
			t.Errorf("and %q", more)
		}
		_ = conn.Close()
		<-conn.Done()
	})
}

// What the other end may not say ends the session at both ends.
func TestBroken(t *testing.T) {
	for _, text := range []string{"ack 3", "ack 0", "ack", "ack 02", "ack -1", "ack 1 1", "open", "resumed 0", "x", "true"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, nil)
				r := w.raw()
				_ = opened(t, r)
				synctest.Wait()
				conn := w.conn()
				_ = conn.Notify(t.Context(), "n", []int{0})
				_ = conn.Notify(t.Context(), "n", []int{1})
				r.Want(note(0), note(1))
				r.Send("ack 1")
				r.Send(text)
				closed(t, r, 1002)
				<-conn.Done()
				var gap *resume.GapError
				if !errors.As(conn.Err(), &gap) || gap.Reason != resume.Broken {
					t.Errorf("ended with %v", conn.Err())
				}
				if s := w.sessions.Stats(); s.Open != 0 || s.Lost[resume.Broken] != 1 {
					t.Errorf("stats: %+v", s)
				}
			})
		})
	}
}

// An end that says nothing, or never confirms, holds nothing for long.
func TestSilentHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		r := w.raw()
		closed(t, r, 1013)
		r = w.raw()
		r.Send("open")
		r.Receive()
		w.cut()
		synctest.Wait()
		if s := w.sessions.Stats(); s.Parked != 1 {
			t.Errorf("stats: %+v", s)
		}
		time.Sleep(11 * time.Second)
		if s := w.sessions.Stats(); s.Open != 0 || s.Parked != 0 {
			t.Errorf("a session nobody knows of is kept: %+v", s)
		}
		<-w.conn().Done()
	})
}

// A handshake that takes the session up shows that the other end knows of it.
func TestClaimConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		r := w.raw()
		r.Send("open")
		id := strings.Fields(r.Receive())[1]
		w.cut()
		r = w.raw()
		r.Send("resume " + id + " 1 0")
		r.Want("resumed 0")
		w.cut()
		time.Sleep(time.Minute)
		r = w.raw()
		r.Send("resume " + id + " 2 0")
		r.Want("resumed 0")
		_ = w.conn().Close()
		<-w.conn().Done()
	})
}

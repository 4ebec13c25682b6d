//go:build !race

package resume_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// A session allocates nothing per message beside what a connection does: what it holds lies
// in memory that is used again. A garbage collection may empty the pools, for which there
// is some room.
func TestAllocations(t *testing.T) {
	var reg peer.Registry
	add.Handle(&reg, sum)
	note := peer.Notification[[]int]("note")
	handled := make(chan struct{}, 1)
	note.Handle(&reg, func(context.Context, []int) error { handled <- struct{}{}; return nil })
	sessions := resume.NewSessions(&resume.Options{Anonymous: true})
	server := peer.NewServer(sessions.Server(&peer.Options{Handler: &reg}))
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Close()
	connect := func(opts *peer.ClientOptions) *peer.Conn {
		c, err := peer.NewClient(web.URL, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(); <-c.Done() })
		conn, err := c.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	plain, session := connect(nil), connect(resume.Client(nil, nil))
	if plain.Resumes() || !session.Resumes() {
		t.Fatal("these are not a plain connection and a session")
	}
	ctx, params := t.Context(), []int{1, 2}
	for name, do := range map[string]func(*peer.Conn){
		"call": func(c *peer.Conn) {
			if _, err := add.Call(ctx, c, params); err != nil {
				t.Error(err)
			}
		},
		"notification": func(c *peer.Conn) {
			if err := note.Notify(ctx, c, params); err != nil {
				t.Error(err)
			}
			<-handled
		},
	} {
		count := func(c *peer.Conn) float64 {
			for range 500 { // fills the pools
				do(c)
			}
			return testing.AllocsPerRun(2000, func() { do(c) })
		}
		if without, with := count(plain), count(session); with > without+0.5 {
			t.Errorf("a %s allocates %v times over a session, %v without", name, with, without)
		}
	}
}

package resume

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
)

// A session that is lost again before it was taken out of those that are parked has its
// whole time once more.
func TestParkedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{t: t, calm: true, rng: rand.New(rand.NewPCG(1, 1))}
		a := NewSessions(nil)
		here, there := m.cable()
		_ = here.Write(context.Background(), []byte("open"))
		accepted, err := a.Accept(peer.WithPrincipal(context.Background(), "somebody"), there)
		if err != nil {
			t.Fatal(err)
		}
		s := accepted.(*session)
		s.confirmed = true
		s.lost(s.link, errors.New("lost"))
		time.Sleep(time.Minute)
		_, there = m.cable()
		l := newLink(there)
		if _, _, err := s.claim(l, 1, 0); err != nil {
			t.Fatal(err)
		}
		s.lost(l, errors.New("lost"))
		time.Sleep(119 * time.Second)
		if _, _, alive := s.unattached(); !alive {
			t.Error("ended early")
		}
		time.Sleep(2 * time.Second)
		<-s.Done()
		if st := a.Stats(); st.Open != 0 || st.Parked != 0 || st.Lost[Expired] != 1 || len(a.shares) != 0 {
			t.Errorf("stats: %+v", st)
		}
	})
}

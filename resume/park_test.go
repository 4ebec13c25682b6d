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

// opening is a socket over which the other end hears of its session before the Write that
// tells it returns.
type opening struct {
	*plug
	heard func(line string)
}

func (o *opening) Write(ctx context.Context, msgs ...[]byte) error {
	err := o.plug.Write(ctx, msgs...)
	o.heard(string(msgs[0]))
	return err
}

// A session that is taken up over another socket while its opening is not over goes on.
func TestTakenUpAtOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{t: t, calm: true, tally: &tally{}, rng: rand.New(rand.NewPCG(1, 1))}
		a := NewSessions(nil)
		ctx := peer.WithPrincipal(context.Background(), "somebody")
		first, there := m.cable()
		second, again := m.cable()
		_ = first.Write(ctx, []byte("open"))
		accepted, err := a.Accept(ctx, &opening{there, func(line string) {
			if args, ok := words([]byte(line), wordOpened, 2); ok {
				first.cut()
				_ = second.Write(ctx, []byte("resume "+string(args[0])+" 1 0"))
				go func() { _, _ = a.Accept(ctx, again) }()
				synctest.Wait()
			}
		}})
		if err != nil {
			t.Fatalf("the session was ended: %v", err)
		}
		got, err := second.Read(ctx, nil)
		if string(got) != "resumed 0" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		s := accepted.(*session)
		synctest.Wait()
		if err := s.Write(ctx, []byte("{}")); err != nil {
			t.Error(err)
		}
		_ = s.Close(nil)
		<-s.Done()
	})
}

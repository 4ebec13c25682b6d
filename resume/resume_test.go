// What happened to users of other libraries, and the tests that it does not happen here:
//
//   - a replay reported as truncated and rendered as if it were whole: TestStream (lost), TestRestarted
//   - a sequence that restarts at 1 after the parked session was evicted, while the other end keeps its old
//     mark: TestEvicted, TestRestarted, TestModel
//   - a replay interrupted by a second loss, so that the third connection never asks again: TestLostWhileSentAgain, TestModel
//   - live messages sent between subscribing and replaying, so that they come twice: TestModel
//   - a dropped socket that cancels the running turn: TestTurnOutlivesSocket
//   - a turn nobody reclaims that runs for ever: TestExpires
//   - frames buffered while disconnected replayed later, so that mutations ran twice: TestSentIsAcknowledged, and in
//     package peer TestClientCallsAgain and TestClientCallsOnce
//   - subscriptions silently lost on reconnect: TestRestarted, and in package peer TestClientSubscribesAgain
//   - reconnect storms without jitter: in package peer TestRedialFullJitter and TestRedialPauses

package resume_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
	"github.com/duetrpc/duet/resume"
)

const add = peer.Method[[]int, int]("add")

func sum(_ context.Context, in []int) (int, error) {
	total := 0
	for _, n := range in {
		total += n
	}
	return total, nil
}

func TestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		add.Handle(&reg, sum)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		c := w.client(nil, nil)
		defer w.end(c)
		for i := range 50 {
			got, err := add.Call(t.Context(), c, []int{i, 1})
			if err != nil || got != i+1 {
				t.Fatalf("call %d: %d, %v", i, got, err)
			}
			w.cut()
		}
		if sockets, conns := w.count(); sockets < 50 || conns != 1 {
			t.Errorf("%d sockets and %d connections, want 50 and 1", sockets, conns)
		}
	})
}

// A process that was started anew knows no session: the old one is over, whatever of it was
// on its way is told as lost, and the new connection is set up before all calls.
func TestRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		started, _ := slow(&reg)
		add.Handle(&reg, sum)
		w := newWorld(t, nil, &peer.Options{Handler: &reg})
		var connected atomic.Int32
		c := w.client(&peer.ClientOptions{OnConnect: func(context.Context, *peer.Conn) error { connected.Add(1); return nil }}, nil)
		defer w.end(c)
		done := call(c, "slow")
		<-started
		time.Sleep(time.Second)
		w.restart()
		err := <-done
		var gap *resume.GapError
		var failed *peer.CallError
		if !errors.As(err, &gap) || gap.Reason != resume.Unknown || !errors.Is(err, peer.ErrLost) ||
			!errors.As(err, &failed) || failed.Sent != pending.Sent || errors.Is(err, io.EOF) {
			t.Errorf("the call that waited: %v", err)
		}
		if got, err := add.Call(t.Context(), c, []int{1, 2}); got != 3 || err != nil {
			t.Errorf("after that: %d, %v", got, err)
		}
		if s := w.sessions.Stats(); connected.Load() != 2 || s.Opened != 1 || s.Refused != 1 {
			t.Errorf("OnConnect ran %d times, %+v", connected.Load(), s)
		}
	})
}

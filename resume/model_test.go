package resume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/wsconn"
)

// TestModel has two ends exchange numbered messages over a network that loses sockets at
// any message, sees their end late, delays, repeats and reorders handshakes, and now and
// then takes longer than a session is kept. What a model of two lists says must hold at
// all times: what has arrived is the beginning of what was sent, nothing that is
// acknowledged has not arrived, and either all arrives or both ends learn that the
// session is over.
func TestModel(t *testing.T) {
	first, runs := rand.Uint64(), modelRuns
	if text := os.Getenv("RESUME_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
		runs = 1
	}
	var sum tally
	for i := range runs {
		seed := first + uint64(i)
		synctest.Test(t, func(t *testing.T) { runModel(t, seed, &sum) })
		if t.Failed() {
			t.Fatalf("seed %d, after %d runs; RESUME_SEED repeats it", seed, i)
		}
	}
	t.Logf("seeds %d and the %d after it: %+v", first, runs-1, sum)
	if runs > 1 && (sum.Cuts < modelRuns || sum.Resumed < modelRuns/2 || sum.Gaps == 0 || sum.Whole < modelRuns/2 || sum.Stale == 0) {
		t.Errorf("the network was too kind: %+v", sum)
	}
}

// tally is what happened in many runs.
type tally struct{ Cuts, Resumed, Gaps, Whole, Stale, Messages int }

// model is one run.
type model struct {
	t        *testing.T
	seed     uint64
	sessions *Sessions
	tally    *tally

	mu      sync.Mutex
	rng     *rand.Rand
	calm    bool            // no more faults
	harsh   bool            // there was one that a session need not survive
	apps    map[string]*app // of the accepting end, by the ids of their sessions
	running sync.WaitGroup
}

func (m *model) n(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(n)
}

func (m *model) chance(percent int) bool { return m.n(100) < percent }

func (m *model) isCalm() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calm
}

func (m *model) wasHarsh() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.harsh = true
}

func (m *model) add(count *int, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*count += n
}

// pause is a random time, mostly short.
func (m *model) pause(most time.Duration) {
	if m.chance(50) {
		time.Sleep(time.Duration(m.n(int(most))))
	}
}

// Dial implements redialer.
func (m *model) Dial(ctx context.Context, _ error) (peer.Transport, error) {
	most := 50 * time.Millisecond
	if !m.isCalm() && m.chance(2) {
		most = 12 * time.Second // longer than a session is kept
		m.wasHarsh()
	}
	select {
	case <-time.After(time.Duration(m.n(int(most)))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a, b := m.cable()
	m.running.Go(func() { m.accept(b, true) })
	return a, nil
}

// Failed implements redialer.
func (m *model) Failed(error) bool { return true }

// Resumed implements redialer.
func (m *model) Resumed() { m.add(&m.tally.Resumed, 1) }

// accept is the accepting end of one socket, which may come late.
func (m *model) accept(b *plug, first bool) {
	if first && !m.isCalm() && m.chance(10) {
		most := time.Second
		if m.chance(20) {
			most = 15 * time.Second // longer than a handshake may take
			m.wasHarsh()
		}
		time.Sleep(time.Duration(m.n(int(most))))
	}
	heard := &recorder{plug: b}
	t, err := m.sessions.Accept(peer.WithPrincipal(context.Background(), "somebody"), heard)
	if err != nil {
		_ = b.Close(err)
	}
	if s, ok := t.(*session); ok {
		m.serve(s)
	}
	if first && strings.HasPrefix(heard.line, wordResume) && m.chance(20) {
		m.pause(time.Second)
		m.replay(heard.line)
	}
}

// recorder remembers the first line. It is a Transport and no more.
type recorder struct {
	*plug
	line string
}

func (r *recorder) Read(ctx context.Context, buf []byte) ([]byte, error) {
	buf, err := r.plug.Read(ctx, buf)
	if err == nil && r.line == "" {
		r.line = string(buf)
	}
	return buf, err
}

// replay presents a handshake again, which must not be heeded.
func (m *model) replay(text string) {
	a, b := m.cable()
	m.running.Go(func() { m.accept(b, false) })
	_ = a.Write(context.Background(), []byte(text))
	got, err := a.Read(context.Background(), nil)
	var closed *wsconn.CloseError
	switch {
	case err == nil:
		m.t.Errorf("seed %d: a handshake was heeded again: %q brought %q", m.seed, text, got)
	case errors.As(err, &closed) && (closed.Code == codeReplaced || closed.Code == codeLost):
		m.add(&m.tally.Stale, 1)
	}
	_ = a.Close(nil)
}

// app is the application at one end of a session.
type app struct {
	m    *model
	s    *session
	from string
	sent int

	mu    sync.Mutex
	got   int
	other string
	err   error // of Read
}

// start has an app send n messages, and take those of the other.
func (m *model) start(s *session, from, other string, n int) *app {
	a := &app{m: m, s: s, from: from, other: other, sent: n}
	m.running.Go(func() { a.write(n) })
	m.running.Go(a.read)
	return a
}

func (a *app) write(n int) {
	ctx := context.Background()
	for i := 0; i < n; {
		a.m.pause(20 * time.Millisecond)
		var msgs [][]byte
		for range 1 + a.m.n(4) {
			if i < n {
				msgs = append(msgs, []byte(fmt.Sprintf("{%s %d %s}", a.from, i, strings.Repeat("x", a.m.n(3000)))))
				i++
			}
		}
		if len(msgs) == 1 {
			if took, flushed := a.s.TryWrite(msgs[0]); took {
				if !flushed {
					_ = a.s.Write(ctx)
				}
				continue
			}
		}
		if a.s.Write(ctx, msgs...) != nil {
			return
		}
	}
}

func (a *app) read() {
	for {
		text, err := a.s.Read(context.Background(), nil)
		a.mu.Lock()
		if err != nil {
			a.err = err
			a.mu.Unlock()
			<-a.s.Done()
			return
		}
		if want := fmt.Sprintf("{%s %d ", a.other, a.got); !strings.HasPrefix(string(text), want) {
			a.m.t.Errorf("seed %d: %s got %.20q, want %q", a.m.seed, a.from, text, want)
		}
		a.got++
		a.mu.Unlock()
	}
}

func (a *app) state() (got int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.got, a.err
}

// serve starts the application of a session at the accepting end.
func (m *model) serve(s *session) {
	a := m.start(s, "server", "client", 20+m.n(40))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps[s.id] = a
}

func (m *model) app(id string) *app {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.apps[id]
}

func runModel(t *testing.T, seed uint64, sum *tally) {
	m := &model{t: t, seed: seed, tally: sum, rng: rand.New(rand.NewPCG(seed, 0)), apps: make(map[string]*app)}
	o := &Options{Park: 5 * time.Second, Buffer: int64(4<<10 + m.n(32<<10))}
	m.sessions = NewSessions(o)
	var s *session
	for s == nil {
		opened, err := open(context.Background(), o.prepare(), m)
		if err == nil {
			s = opened.(*session)
		}
	}
	client := m.start(s, "client", "server", 20+m.n(40))
	synctest.Wait() // for the other end to have it, too
	server := m.app(s.id)

	// The model: what is acknowledged has arrived, at any time.
	began := time.Now()
	var clientErr, serverErr error
	for {
		time.Sleep(10 * time.Millisecond)
		for _, ends := range [][2]*app{{client, server}, {server, client}} {
			if acked, arrived := ends[0].s.Acknowledged(), ends[1].s.arrived(); acked > arrived {
				t.Errorf("seed %d: %d messages of the %s acknowledged, %d arrived", seed, acked, ends[0].from, arrived)
			}
		}
		var clientGot, serverGot int
		clientGot, clientErr = client.state()
		serverGot, serverErr = server.state()
		if clientErr != nil && serverErr != nil {
			m.add(&sum.Gaps, 1)
			break
		}
		if clientErr == nil && serverErr == nil && clientGot == server.sent && serverGot == client.sent &&
			client.s.Acknowledged() == uint64(client.sent) && server.s.Acknowledged() == uint64(server.sent) {
			m.add(&sum.Whole, 1)
			break
		}
		took := time.Since(began)
		if took > time.Minute {
			t.Errorf("seed %d: after %v the client has %d of %d (%v), the server %d of %d (%v), acknowledged %d and %d",
				seed, took, clientGot, server.sent, clientErr, serverGot, client.sent, serverErr,
				client.s.Acknowledged(), server.s.Acknowledged())
			break
		}
		if took > 20*time.Second {
			m.mu.Lock()
			m.calm = true
			m.mu.Unlock()
		}
		m.add(&sum.Messages, 1)
	}
	m.mu.Lock()
	m.calm = true
	harsh := m.harsh
	m.mu.Unlock()
	if clientErr != nil && !harsh {
		t.Errorf("seed %d: the session was lost without need: %v, %v", seed, clientErr, serverErr)
	}
	var gap *GapError
	for _, err := range []error{clientErr, serverErr} {
		if err != nil && (!errors.As(err, &gap) || errors.Is(err, io.EOF)) {
			t.Errorf("seed %d: the session ended with %v, not with a gap", seed, err)
		}
	}

	// An orderly end at one end is one at the other, if it can be told, and one in time
	// if not.
	ends := []*app{client, server}
	k := m.n(2)
	_ = ends[k].s.Close(nil)
	<-ends[k].s.Done()
	<-ends[1-k].s.Done()
	m.running.Wait()
	synctest.Wait() // for sessions that came to nothing
	if st := m.sessions.Stats(); st.Open != 0 || st.Parked != 0 || st.ParkedBytes != 0 || len(m.sessions.shares) != 0 {
		t.Errorf("seed %d: left behind: %+v", seed, st)
	}
	for _, a := range ends {
		a.s.mu.Lock()
		if a.s.link != nil || a.s.tasks != 0 || a.s.writing || a.s.out.head != nil {
			t.Errorf("seed %d: the session of the %s is not at rest", seed, a.from)
		}
		a.s.mu.Unlock()
	}
}

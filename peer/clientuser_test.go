package peer_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
	"github.com/duetrpc/duet/wsconn"
)

// GiveUp ends the client, with the error it accepted: that of an attempt, or what ended a
// connection.
func TestClientGivesUp(t *testing.T) {
	refused := &wsconn.DialError{Status: 401, Err: errRefused}
	for name, test := range map[string]struct {
		hold  func(context.Context, int) error
		end   func(x *exchange)
		want  func(error) bool
		phase peer.ClientPhase
	}{
		"attempt": {
			func(_ context.Context, n int) error {
				if n < 3 {
					return errRefused
				}
				return refused
			}, func(*exchange) {},
			func(err error) bool { return errors.Is(err, refused) }, peer.DialFailed,
		},
		"connection": {
			nil, func(x *exchange) { x.broken.Close(coded{}) },
			func(err error) bool {
				var closed *peer.CloseError
				return errors.As(err, &closed) && closed.Code == 4321
			}, peer.Disconnected,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &exchange{t: t, hold: test.hold, take: nil}
				if test.hold == nil {
					x.take = func(_ int, tr peer.Transport) { x.broken = tr }
				}
				var l states
				c := x.client(peer.ClientOptions{OnState: l.add, GiveUp: test.want})
				waits := make(chan error, 1)
				go func() { waits <- c.Call(t.Context(), "m", nil, nil) }()
				synctest.Wait()
				if c.Err() != nil {
					t.Errorf("Err = %v while the client lives", c.Err())
				}
				test.end(x)
				<-c.Done()
				for what, err := range map[string]error{"Err": c.Err(), "a call that waits": <-waits, "Notify": c.Notify(t.Context(), "m", nil)} {
					if !test.want(err) {
						t.Errorf("%s = %v, want what GiveUp accepted", what, err)
					}
				}
				err := c.Call(t.Context(), "m", nil, nil)
				if wantSent(t, err, pending.NotSent); !test.want(err) {
					t.Errorf("Call = %v, want what GiveUp accepted", err)
				}
				all := l.list()
				ended, before := all[len(all)-1], all[len(all)-2]
				if ended.Phase != peer.Ended || !test.want(ended.Err) || before.Phase != test.phase || !test.want(before.Err) || before.Wait != 0 {
					t.Errorf("the last states are %v and %v", before, ended)
				}
			})
		})
	}
}

// Close works from everywhere, at once, and nothing goes on after it.
func TestClientCloseFrom(t *testing.T) {
	for name, set := range map[string]func(x *exchange, o *peer.ClientOptions, closing func()){
		"OnConnect": func(_ *exchange, o *peer.ClientOptions, closing func()) {
			o.OnConnect = func(ctx context.Context, _ *peer.Conn) error {
				closing()
				if !errors.Is(context.Cause(ctx), peer.ErrClosed) {
					return errors.New("the context of OnConnect lives on")
				}
				return nil
			}
		},
		"Dial": func(x *exchange, _ *peer.ClientOptions, closing func()) {
			x.hold = func(ctx context.Context, _ int) error { closing(); <-ctx.Done(); return ctx.Err() }
		},
		"Session": func(x *exchange, o *peer.ClientOptions, closing func()) {
			o.Session = func(ctx context.Context, d *peer.Redialer) (peer.Transport, error) {
				closing()
				if _, err := d.Dial(ctx, nil); !errors.Is(err, peer.ErrClosed) {
					x.t.Errorf("Dial = %v, want ErrClosed", err)
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
		},
		"Dial of a Session": func(x *exchange, o *peer.ClientOptions, closing func()) {
			x.hold = func(ctx context.Context, _ int) error { closing(); <-ctx.Done(); return ctx.Err() }
			o.Session = unbound
		},
		"pause of a Session": func(x *exchange, o *peer.ClientOptions, closing func()) {
			x.hold = func(context.Context, int) error { time.AfterFunc(time.Millisecond, closing); return errRefused }
			o.FirstWait, o.MaxWait = 1000*time.Hour, 1000*time.Hour
			o.Session = unbound
		},
		"Outgoing": func(_ *exchange, o *peer.ClientOptions, closing func()) {
			o.Outgoing = []func(peer.Caller) peer.Caller{func(next peer.Caller) peer.Caller { closing(); return next }}
		},
		"GiveUp": func(x *exchange, o *peer.ClientOptions, closing func()) {
			x.hold = func(context.Context, int) error { return errRefused }
			o.GiveUp = func(error) bool { closing(); return true }
		},
		"state dialling":  closeIn(peer.Dialling),
		"state connected": closeIn(peer.Connected),
		"state failed": func(x *exchange, o *peer.ClientOptions, closing func()) {
			x.hold = func(context.Context, int) error { return errRefused }
			closeIn(peer.DialFailed)(x, o, closing)
		},
		"pause": func(x *exchange, o *peer.ClientOptions, closing func()) {
			x.hold = func(context.Context, int) error { time.AfterFunc(time.Millisecond, closing); return errRefused }
			o.FirstWait, o.MaxWait = 1000*time.Hour, 1000*time.Hour // one below 1 ms comes once in 10^9 runs
		},
		"handler": func(_ *exchange, o *peer.ClientOptions, closing func()) {
			o.Handler = peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { closing(); return nil, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &exchange{t: t}
				made := make(chan struct{})
				var c *peer.Client
				var l states
				o := peer.ClientOptions{OnState: l.add}
				closing := func() {
					<-made
					if err := c.Close(); err != nil {
						t.Errorf("Close = %v", err)
					}
					if err := c.Call(context.Background(), "m", nil, nil); !errors.Is(err, peer.ErrClosed) {
						t.Errorf("Call after Close = %v, want ErrClosed", err)
					}
				}
				set(x, &o, closing)
				c = x.client(o)
				close(made)
				if name == "handler" {
					synctest.Wait()
					_ = x.last().Notify(t.Context(), "close", nil)
				}
				began := time.Now()
				<-c.Done()
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
				if c.Err() != nil {
					t.Errorf("Err = %v after Close", c.Err())
				}
				all := l.list()
				if o.OnState != nil && len(all) > 0 && all[len(all)-1].Phase != peer.Ended {
					t.Errorf("states %v", all)
				}
				n := len(x.dialled())
				time.Sleep(time.Hour)
				synctest.Wait()
				if more := len(x.dialled()); more != n || n > 1 {
					t.Errorf("%d dials, and %d after the end", n, more-n)
				}
			})
		})
	}
}

// unbound is a Session that bounds nothing.
func unbound(_ context.Context, d *peer.Redialer) (peer.Transport, error) {
	return d.Dial(context.Background(), nil)
}

// closeIn closes in OnState.
func closeIn(phase peer.ClientPhase) func(*exchange, *peer.ClientOptions, func()) {
	return func(_ *exchange, o *peer.ClientOptions, closing func()) {
		next := o.OnState
		o.OnState = func(s peer.ClientState) {
			if next(s); s.Phase == phase {
				closing()
			}
		}
	}
}

// User code that panics, or ends its goroutine, has failed, and the client goes on.
func TestClientUserCodePanics(t *testing.T) {
	for what, fail := range map[string]func(){"panic": func() { panic("oh") }, "Goexit": runtime.Goexit} {
		var failing atomic.Int32 // calls that fail, of each function
		once := func() {
			if failing.Add(1) == 1 {
				fail()
			}
		}
		for name, set := range map[string]func(x *exchange, o *peer.ClientOptions){
			"Dial": func(x *exchange, _ *peer.ClientOptions) {
				x.hold = func(context.Context, int) error { once(); return nil }
			},
			"Session": func(_ *exchange, o *peer.ClientOptions) {
				o.Session = func(ctx context.Context, d *peer.Redialer) (peer.Transport, error) { once(); return d.Dial(ctx, nil) }
			},
			"OnConnect": func(_ *exchange, o *peer.ClientOptions) {
				o.OnConnect = func(context.Context, *peer.Conn) error { once(); return nil }
			},
			"OnState": func(_ *exchange, o *peer.ClientOptions) {
				o.OnState = func(peer.ClientState) { once() }
			},
			"GiveUp": func(x *exchange, o *peer.ClientOptions) {
				x.hold = func(_ context.Context, n int) error {
					if n == 1 {
						return errRefused
					}
					return nil
				}
				o.GiveUp = func(error) bool { once(); return true }
			},
			"Options.Outgoing": func(_ *exchange, o *peer.ClientOptions) {
				o.Outgoing = []func(peer.Caller) peer.Caller{func(next peer.Caller) peer.Caller { once(); return next }}
			},
		} {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					failing.Store(0)
					x := &exchange{t: t, opts: methods{"m": answers(1)}.options()}
					var log textLog
					o := peer.ClientOptions{}
					o.Logger = log.logger()
					set(x, &o)
					c := x.client(o)
					if err := c.Call(t.Context(), "m", nil, nil); err != nil {
						t.Error(err)
					}
					_ = c.Close()
					if !clientDone(c) {
						t.Error("the client is not done")
					}
					if n := failing.Load(); name == "OnState" && n != 3 {
						t.Errorf("OnState ran %d times, want 3", n)
					}
					lines := log.lines("duet: panic")
					if what == "panic" && (len(lines) != 1 || !strings.Contains(lines[0], name) || !strings.Contains(lines[0], "panic=oh") || !strings.Contains(lines[0], "clientuser_test.go")) {
						t.Errorf("logged %q, want the panic with its stack", lines)
					}
				})
			})
		}
	}
}

// A slow OnState gets the states in order, one at a time, and the last of too many.
func TestClientSlowOnState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t, hold: func(context.Context, int) error { return errRefused }}
		var mu sync.Mutex
		open := make(chan struct{})
		var got []peer.ClientState
		c := x.client(peer.ClientOptions{OnState: func(s peer.ClientState) {
			<-open
			if !mu.TryLock() {
				t.Error("OnState runs twice at a time")
				return
			}
			defer mu.Unlock()
			got = append(got, s)
		}})
		time.Sleep(2 * time.Hour)
		_ = c.Close()
		synctest.Wait()
		close(open)
		<-c.Done()
		if n := len(got); n != 257 || got[n-1].Phase != peer.Ended {
			t.Fatalf("%d states came, want 257 with the end", n)
		}
		for i, s := range got[2 : len(got)-1] {
			if before := got[i+1]; s.Attempt < before.Attempt || s.Attempt == before.Attempt && s.Phase != peer.DialFailed {
				t.Errorf("%v came after %v", s, before)
			}
		}
	})
}

// Done waits for the handlers of every connection, also of one long gone.
func TestClientDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{t: t}
		c := x.client(peer.ClientOptions{Options: *methods{"deaf": naps(time.Hour)}.options()})
		synctest.Wait()
		began := time.Now()
		go func() { _ = x.last().Call(t.Context(), "deaf", nil, nil) }()
		synctest.Wait()
		_ = x.last().Close()
		time.Sleep(time.Minute)
		_ = c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v, want the end of its context", err)
		}
		<-c.Done()
		wantTook(t, "Done", began, time.Hour)
	})
}

package wsconn_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

func TestPingTimeout(t *testing.T) {
	for _, test := range []struct {
		name              string
		interval, timeout time.Duration
		want              time.Duration
	}{{"defaults", 0, 0, 30 * time.Second}, {"given", time.Second, 5 * time.Second, 6 * time.Second}} {
		for _, reads := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, raw := acceptRaw(t, &wsconn.Options{PingInterval: test.interval, PongTimeout: test.timeout, WriteTimeout: time.Minute})
					if reads {
						go func() {
							for {
								if _, err := readFrame(raw); err != nil {
									return
								}
							}
						}()
					}
					start := time.Now()
					_, err := c.Read(t.Context(), nil)
					if !errors.Is(err, wsconn.ErrPingTimeout) || time.Since(start) != test.want {
						t.Errorf("Read = %v after %v, want ErrPingTimeout after %v", err, time.Since(start), test.want)
					}
					if err := c.Write(t.Context(), nil); !errors.Is(err, wsconn.ErrPingTimeout) {
						t.Errorf("Write = %v, want ErrPingTimeout", err)
					}
					<-c.Done()
					raw.Close()
				})
			})
		}
	}
}

func TestPingAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, nil, nil)
		near, far := readAll(a), readAll(b)
		time.Sleep(time.Hour)
		if err := a.Write(t.Context(), []byte("x")); err != nil {
			t.Errorf("Write after an idle hour = %v, want nil", err)
		}
		a.Close(nil)
		<-near
		<-far
		<-a.Done()
		<-b.Done()
	})
}

func TestNoPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, &wsconn.Options{PingInterval: -1})
		end := readAll(c)
		time.Sleep(24 * time.Hour)
		go raw.Write(frame{pings, []byte("still there?")}.bytes(true))
		if f, err := readFrame(raw); err != nil || f.first != pongs || string(f.payload) != "still there?" {
			t.Errorf("first frame in a day = %x %q, %v, want the pong", f.first, f.payload, err)
		}
		raw.Close()
		<-end
		<-c.Done()
	})
}

// Only the ping's own pong counts: neither one nobody asked for, nor that of an earlier ping.
func TestPongOfAnotherPing(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(latest, earlier []byte) []byte
		alive  bool
	}{
		{"own", func(latest, _ []byte) []byte { return latest }, true},
		{"empty", func(_, _ []byte) []byte { return nil }, false},
		{"foreign", func(_, _ []byte) []byte { return []byte("12345678") }, false},
		{"earlier", func(_, earlier []byte) []byte { return earlier }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, raw := acceptRaw(t, nil)
				end := readAll(c)
				first, err := readFrame(raw)
				if err != nil || first.first != pings {
					t.Fatalf("frame = %x, %v, want a ping", first.first, err)
				}
				raw.Write(frame{pongs, first.payload}.bytes(true))
				second, err := readFrame(raw)
				if err != nil || second.first != pings || bytes.Equal(second.payload, first.payload) {
					t.Fatalf("frame = %x %x, %v, want a ping unlike %x", second.first, second.payload, err, first.payload)
				}
				raw.Write(frame{pongs, test.answer(second.payload, first.payload)}.bytes(true))
				third, err := readFrame(raw)
				if alive := err == nil && third.first == pings; alive != test.alive {
					t.Errorf("third frame = %x, %v, want a ping: %v", third.first, err, test.alive)
				}
				raw.Close()
				if err := <-end; !test.alive && !errors.Is(err, wsconn.ErrPingTimeout) {
					t.Errorf("Read = %v, want ErrPingTimeout", err)
				}
				<-c.Done()
			})
		})
	}
}

// Both ends write more than the stream holds, each answers a ping of the other at the same time, and neither
// reader may wait for its own writer: nothing would move again.
func TestPingsBetweenBusyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, rawA := acceptRaw(t, nil)
		b, rawB, err := dialRaw(t, nil)
		if err != nil {
			t.Fatalf("Dial = %v", err)
		}
		big := bytes.Repeat([]byte("x"), 1<<20)
		wrote := make(chan error, 2)
		for _, c := range []*wsconn.Conn{a, b} {
			go func() { wrote <- c.Write(context.Background(), big) }()
		}
		synctest.Wait() // both writers are stuck, for nobody reads
		got := make(chan int, 2)
		for _, c := range []*wsconn.Conn{a, b} {
			go func() {
				msg, _ := c.Read(context.Background(), nil)
				got <- len(msg)
				readAll(c)
			}()
		}
		// Each end first receives a ping, then what the other writes.
		go func() { rawA.Write(frame{pings, []byte("p")}.bytes(true)); transfer(rawA, rawB) }()
		go func() { rawB.Write(frame{pings, []byte("p")}.bytes(false)); transfer(rawB, rawA) }()
		for range 2 {
			if n := <-got; n != len(big) {
				t.Errorf("Read = %d bytes, want %d", n, len(big))
			}
			if err := <-wrote; err != nil {
				t.Errorf("Write = %v, want nil", err)
			}
		}
		a.Close(nil)
		<-a.Done()
		<-b.Done()
		rawA.Close()
		rawB.Close()
	})
}

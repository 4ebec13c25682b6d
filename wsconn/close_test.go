package wsconn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

// chosen is a cause from outside the package that chooses its close frame.
type chosen struct {
	code   int
	reason string
}

func (c chosen) Error() string                 { return "secret detail" }
func (c chosen) WebSocketClose() (int, string) { return c.code, c.reason }

// What Close is given, what the other end is told, and which errors both find in it.
func TestCloseBothWays(t *testing.T) {
	for _, test := range []struct {
		name   string
		cause  error
		code   int
		reason string
		is     error // at both ends; nil for an orderly end, io.EOF at both
	}{
		{"nil", nil, 1000, "", io.EOF},
		{"going away", wsconn.ErrGoingAway, 1001, "going away", io.EOF},
		{"going away is a cause too", wsconn.ErrGoingAway, 1001, "going away", wsconn.ErrGoingAway},
		{"protocol", wsconn.ErrProtocol, 1002, "protocol error", wsconn.ErrProtocol},
		{"unsupported", wsconn.ErrUnsupportedData, 1003, "unsupported data", wsconn.ErrUnsupportedData},
		{"utf8", wsconn.ErrInvalidUTF8, 1007, "invalid UTF-8", wsconn.ErrInvalidUTF8},
		{"policy", wsconn.ErrPolicy, 1008, "policy violation", wsconn.ErrPolicy},
		{"too big", wsconn.ErrMessageTooBig, 1009, "message too big", wsconn.ErrMessageTooBig},
		{"internal", wsconn.ErrInternal, 1011, "internal error", wsconn.ErrInternal},
		{"restart", wsconn.ErrServiceRestart, 1012, "service restart", wsconn.ErrServiceRestart},
		{"try again", wsconn.ErrTryAgainLater, 1013, "try again later", wsconn.ErrTryAgainLater},
		{"wrapped", fmt.Errorf("inside: %w", wsconn.ErrPolicy), 1008, "policy violation", wsconn.ErrPolicy},
		{"own code", chosen{4001, "mine"}, 4001, "mine", nil},
		{"no cause of its own", chosen{1010, ""}, 1010, "", nil},
		{"unknown error keeps its text", errors.New("password 1234"), 1011, "", wsconn.ErrInternal},
		{"1006 is never sent", chosen{1006, "x"}, 1011, "", wsconn.ErrInternal},
		{"code out of range", chosen{999, "x"}, 1011, "", wsconn.ErrInternal},
		{"5000", chosen{5000, "x"}, 1011, "", wsconn.ErrInternal},
		{"passed on without a code", &wsconn.CloseError{Code: 1005}, 1000, "", io.EOF},
		{"passed on", &wsconn.CloseError{Code: 1013, Reason: "later"}, 1013, "later", wsconn.ErrTryAgainLater},
		{"long reason", chosen{4002, strings.Repeat("é", 100)}, 4002, strings.Repeat("é", 61), nil},
		{"reason not UTF-8", chosen{4003, "a\xffb"}, 4003, "a\uFFFDb", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, dialedCloses := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					closer, other := pair(t, nil, nil)
					if !dialedCloses {
						closer, other = other, closer
					}
					near, far := readAll(closer), readAll(other)
					if err := closer.Close(test.cause); err != nil {
						t.Errorf("Close = %v, want nil", err)
					}
					var local, remote *wsconn.CloseError
					if err := <-near; !errors.As(err, &local) || !errors.Is(err, net.ErrClosed) || !local.Local || local.Code != test.code {
						t.Errorf("Read at the closing end = %v, want code %d, local, net.ErrClosed", err, test.code)
					}
					if err := <-far; !errors.As(err, &remote) || errors.Is(err, net.ErrClosed) || remote.Local ||
						remote.Code != test.code || remote.Reason != test.reason {
						t.Errorf("Read at the other end = %v, want code %d, reason %q", err, test.code, test.reason)
					}
					if test.cause != nil && !errors.Is(local, test.cause) {
						t.Errorf("errors.Is(%v, the cause) = false", local)
					}
					for _, err := range []error{local, remote} {
						if test.is != nil && !errors.Is(err, test.is) {
							t.Errorf("errors.Is(%v, %v) = false", err, test.is)
						}
						if orderly := test.code == 1000 || test.code == 1001; errors.Is(err, io.EOF) != orderly {
							t.Errorf("errors.Is(%v, io.EOF) = %v, want %v", err, !orderly, orderly)
						}
					}
					<-closer.Done()
					<-other.Done()
				})
			}
		})
	}
}

// Codes as a foreign end sends them, and one that sends none.
func TestCloseFrameReceived(t *testing.T) {
	for _, test := range []struct {
		name    string
		payload []byte
		code    int
		reason  string
		is      error
	}{
		{"no code", nil, 1005, "", io.EOF},
		{"1000", closePayload(1000, "bye"), 1000, "bye", io.EOF},
		{"1014", closePayload(1014, ""), 1014, "", nil},
		{"3000", closePayload(3000, ""), 3000, "", nil},
		{"4999", closePayload(4999, ""), 4999, "", nil},
		{"reason not UTF-8", closePayload(4000, "\xff"), 4000, "\uFFFD", nil},
		{"1005 on the wire", closePayload(1005, ""), 1002, "protocol error", wsconn.ErrProtocol},
		{"1006 on the wire", closePayload(1006, ""), 1002, "protocol error", wsconn.ErrProtocol},
		{"one byte", []byte{3}, 1002, "protocol error", wsconn.ErrProtocol},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, raw := acceptRaw(t, nil)
				end := readAll(c)
				raw.Write(frame{closes, test.payload}.bytes(true))
				if f, err := readFrame(raw); err != nil || f.first != closes {
					t.Errorf("answer = %x, %v, want a close frame", f.first, err)
				}
				raw.Close()
				var got *wsconn.CloseError
				err := <-end
				if !errors.As(err, &got) || got.Code != test.code || got.Reason != test.reason {
					t.Errorf("Read = %v, want code %d, reason %q", err, test.code, test.reason)
				}
				if test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("errors.Is(%v, %v) = false", err, test.is)
				}
				<-c.Done()
			})
		})
	}
}

func TestCloseWithoutAnswer(t *testing.T) {
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprintf("other end reads %v", reads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, raw := acceptRaw(t, nil)
				end := readAll(c)
				if reads {
					go io.Copy(io.Discard, raw)
				}
				start := time.Now()
				c.Close(nil)
				if waited := time.Since(start); waited != 0 {
					t.Errorf("Close took %v, want 0", waited)
				}
				if err := c.Write(t.Context(), []byte("x")); !errors.Is(err, net.ErrClosed) || time.Since(start) != 0 {
					t.Errorf("Write after Close = %v after %v, want net.ErrClosed at once", err, time.Since(start))
				}
				if err := <-end; !errors.Is(err, net.ErrClosed) || !errors.Is(err, io.EOF) {
					t.Errorf("Read = %v, want net.ErrClosed and io.EOF", err)
				}
				<-c.Done()
				if waited := time.Since(start); waited != 5*time.Second {
					t.Errorf("Done after %v, want 5s", waited)
				}
				raw.Close()
			})
		})
	}
}

// An end that begins a frame and never completes it must not hold the close handshake: the library waits for the
// rest of a message without any bound.
func TestCloseInsideAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, nil)
		end := readAll(c)
		go io.Copy(io.Discard, raw)
		whole := frame{text, bytes.Repeat([]byte("x"), 1000)}.bytes(true)
		raw.Write(whole[:500])
		start := time.Now()
		c.Close(nil)
		<-c.Done()
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("Done after %v, want 5s", waited)
		}
		if err := <-end; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read = %v, want net.ErrClosed", err)
		}
		raw.Close()
	})
}

// Messages on their way when this end closes are dropped, and the other end's close frame is found behind them.
func TestCloseDropsWhatStillComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, nil)
		end, early := make(chan error, 1), false
		go func() { // one Read, begun before Close, which meets the first late message
			_, err := c.Read(context.Background(), nil)
			select {
			case <-c.Done():
			default:
				early = true
			}
			end <- err
		}()
		synctest.Wait()
		start := time.Now()
		c.Close(nil)
		readFrame(raw)
		for range 3 {
			raw.Write(frame{text, []byte("late")}.bytes(true))
		}
		synctest.Wait()
		raw.Write(frame{closes, closePayload(1000, "")}.bytes(true))
		if err := <-end; !errors.Is(err, net.ErrClosed) || early {
			t.Errorf("Read = %v, before Done: %v, want net.ErrClosed after Done", err, early)
		}
		<-c.Done()
		if waited := time.Since(start); waited != 0 {
			t.Errorf("Done after %v, want 0: the other end has answered", waited)
		}
		raw.Close()
	})
}

// An end that never stops sending is cut after a bounded number of bytes, not only after a time.
func TestCloseBoundsWhatItDiscards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, nil)
		c.Close(nil)
		readFrame(raw)
		msg := frame{text, make([]byte, 1<<20)}.bytes(true)
		sent := 0
		for {
			n, err := raw.Write(msg)
			sent += n
			if err != nil {
				break
			}
		}
		if sent < 16<<20 || sent > 18<<20 {
			t.Errorf("%d bytes were taken after Close, want about 16 MiB", sent)
		}
		<-c.Done()
		raw.Close()
	})
}

func TestFirstCloseWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, nil, nil)
		near, far := readAll(a), readAll(b)
		a.Close(wsconn.ErrPolicy)
		if err := a.Close(nil); err != nil {
			t.Errorf("second Close = %v, want nil", err)
		}
		for _, err := range []error{<-near, <-far, a.Write(t.Context()), b.Write(t.Context(), nil)} {
			if !errors.Is(err, wsconn.ErrPolicy) {
				t.Errorf("error = %v, want ErrPolicy", err)
			}
		}
		<-a.Done()
		<-b.Done()
		if _, err := a.Read(context.Background(), nil); !errors.Is(err, wsconn.ErrPolicy) {
			t.Errorf("Read after Done = %v, want ErrPolicy", err)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			a, b := pair(t, nil, nil)
			far := readAll(b)
			for i := range 8 {
				c := []*wsconn.Conn{a, b}[i%2]
				go func() {
					for c.Write(context.Background(), []byte("one"), []byte("two")) == nil {
					}
				}()
			}
			for range 50 {
				if _, err := a.Read(t.Context(), nil); err != nil {
					t.Fatalf("Read = %v", err)
				}
			}
			near := readAll(a)
			go a.Close(nil)
			go b.Close(wsconn.ErrGoingAway)
			for _, end := range []<-chan error{near, far} {
				if err := <-end; !errors.Is(err, io.EOF) {
					t.Errorf("Read = %v, want an orderly end", err)
				}
			}
			<-a.Done()
			<-b.Done()
		})
	}
}

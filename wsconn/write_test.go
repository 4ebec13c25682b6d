package wsconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

func TestWriteFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, nil)
		msgs := []string{"one", "", "three"}
		go c.Write(t.Context(), []byte(msgs[0]), nil, []byte(msgs[2]))
		for _, want := range msgs {
			if f, err := readFrame(raw); err != nil || f.first != text || string(f.payload) != want {
				t.Errorf("frame = %x %q, %v, want text %q", f.first, f.payload, err, want)
			}
		}
		if err := c.Write(t.Context()); err != nil {
			t.Errorf("Write of nothing = %v, want nil", err)
		}
		raw.Close()
		readAll(c)
		<-c.Done()
	})
}

// Messages of one Write stand together.
func TestWriteIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, nil, nil)
		readAll(a)
		for i := range 4 {
			go a.Write(context.Background(), fmt.Append(nil, i), fmt.Append(nil, i), fmt.Append(nil, i))
		}
		for range 4 {
			var got [3]string
			for i := range got {
				msg, err := b.Read(t.Context(), nil)
				if err != nil {
					t.Fatalf("Read = %v", err)
				}
				got[i] = string(msg)
			}
			if got[0] != got[1] || got[1] != got[2] {
				t.Errorf("messages = %q, want three of the same Write", got)
			}
		}
		readAll(b)
		a.Close(nil)
		<-a.Done()
		<-b.Done()
	})
}

func TestWriteTimeout(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration
		want    time.Duration
	}{{"default", 0, 10 * time.Second}, {"given", time.Second, time.Second}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, raw := acceptRaw(t, &wsconn.Options{WriteTimeout: test.timeout})
				end := readAll(c)
				start := time.Now()
				err := c.Write(t.Context(), []byte("nobody reads"))
				if !errors.Is(err, wsconn.ErrWriteTimeout) || time.Since(start) != test.want {
					t.Errorf("Write = %v after %v, want ErrWriteTimeout after %v", err, time.Since(start), test.want)
				}
				if readErr := <-end; readErr != err {
					t.Errorf("Read = %v, want the same as Write: %v", readErr, err)
				}
				<-c.Done()
				raw.Close()
			})
		})
	}
}

// The deadline is one Write's own: it is not left running after it, nor begun while waiting for the turn.
func TestWriteTimeoutIsPerWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, &wsconn.Options{WriteTimeout: 3 * time.Second, PingInterval: -1})
		end := readAll(c)
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- c.Write(t.Context(), []byte("slow")) }()
		}
		for range 2 {
			time.Sleep(2 * time.Second)
			if _, err := readFrame(raw); err != nil {
				t.Fatalf("readFrame = %v", err)
			}
			if err := <-errs; err != nil {
				t.Errorf("Write = %v, want nil", err)
			}
		}
		time.Sleep(time.Minute)
		raw.Close()
		if err := <-end; errors.Is(err, wsconn.ErrWriteTimeout) {
			t.Errorf("Read = %v, want no ErrWriteTimeout", err)
		}
		<-c.Done()
	})
}

func TestNoWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, &wsconn.Options{WriteTimeout: -1, PingInterval: -1})
		written := make(chan error, 1)
		go func() { written <- c.Write(t.Context(), []byte("x")) }()
		time.Sleep(time.Hour)
		if f, err := readFrame(raw); err != nil || string(f.payload) != "x" {
			t.Errorf("frame = %q, %v, want x", f.payload, err)
		}
		if err := <-written; err != nil {
			t.Errorf("Write = %v, want nil", err)
		}
		c.Close(nil)
		raw.Close()
		<-c.Done()
	})
}

// A context bounds waiting and never what is on its way.
func TestWriteContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, nil)
		end := readAll(c)
		first, stop := context.WithCancel(t.Context())
		written := make(chan error, 1)
		go func() { written <- c.Write(first, []byte("first")) }()
		synctest.Wait()
		stop() // too late for a Write that has begun

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := c.Write(short, []byte("second")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Write = %v after %v, want DeadlineExceeded after 1s", err, time.Since(start))
		}
		own := errors.New("own cause")
		ended, fail := context.WithCancelCause(t.Context())
		fail(own)
		if err := c.Write(ended, []byte("third")); !errors.Is(err, own) || !errors.Is(err, context.Canceled) {
			t.Errorf("Write = %v, want context.Canceled and the cause", err)
		}
		if f, err := readFrame(raw); err != nil || string(f.payload) != "first" {
			t.Errorf("frame = %q, %v, want first", f.payload, err)
		}
		if err := <-written; err != nil {
			t.Errorf("Write of a cancelled context = %v, want nil", err)
		}
		go c.Write(t.Context(), []byte("fourth"))
		if f, err := readFrame(raw); err != nil || string(f.payload) != "fourth" {
			t.Errorf("frame = %q, %v, want fourth: the connection has outlived three contexts", f.payload, err)
		}
		raw.Close()
		<-end
		<-c.Done()
	})
}

// A Close ends a Write that is stuck, within its 5 s, and one that waits behind it at once.
func TestCloseEndsStuckWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, &wsconn.Options{WriteTimeout: -1})
		stuck, waiting := make(chan error, 1), make(chan error, 1)
		go func() { stuck <- c.Write(t.Context(), []byte("x")) }()
		synctest.Wait()
		go func() { waiting <- c.Write(t.Context(), []byte("y")) }()
		synctest.Wait()
		start := time.Now()
		c.Close(nil)
		if err := <-waiting; !errors.Is(err, net.ErrClosed) || time.Since(start) != 0 {
			t.Errorf("waiting Write = %v after %v, want net.ErrClosed at once", err, time.Since(start))
		}
		if err := <-stuck; !errors.Is(err, net.ErrClosed) || time.Since(start) != 5*time.Second {
			t.Errorf("stuck Write = %v after %v, want net.ErrClosed after 5s", err, time.Since(start))
		}
		<-c.Done()
		raw.Close()
	})
}

// Where nobody reads, a Write that meets a dead socket ends the connection by itself.
func TestWriteWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, raw := acceptRaw(t, nil)
		raw.Close()
		err := c.Write(t.Context(), []byte("x"))
		if !errors.Is(err, wsconn.ErrAbnormal) || !errors.Is(err, io.ErrClosedPipe) || errors.Is(err, io.EOF) {
			t.Errorf("Write = %v, want ErrAbnormal with io.ErrClosedPipe", err)
		}
		<-c.Done()
	})
}

// deafConn takes nothing more, as a TCP socket whose other end has closed, but still holds what came before.
type deafConn struct{ net.Conn }

func (deafConn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A Write that meets a broken socket gives Read the time to find the close frame that says why.
func TestWriteReportsTheCloseFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c, err := wsconn.Accept(&hijackWriter{ResponseRecorder: httptest.NewRecorder(), conn: deafConn{far}}, handshake(), nil)
		if err != nil {
			t.Fatalf("Accept = %v", err)
		}
		end := readAll(c)
		go func() {
			time.Sleep(time.Second / 2)
			near.Write(frame{closes, closePayload(1009, "")}.bytes(true))
		}()
		if err := c.Write(t.Context(), []byte("x")); !errors.Is(err, wsconn.ErrMessageTooBig) {
			t.Errorf("Write = %v, want ErrMessageTooBig", err)
		}
		if err := <-end; !errors.Is(err, wsconn.ErrMessageTooBig) {
			t.Errorf("Read = %v, want ErrMessageTooBig", err)
		}
		<-c.Done()
		near.Close()
	})
}

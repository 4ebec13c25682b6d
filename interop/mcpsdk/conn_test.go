package mcpsdk_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/interop/mcpsdk"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/wsconn"
)

// open returns the connection over transport.
func open(t *testing.T, transport peer.Transport) mcp.Connection {
	t.Helper()
	conn, err := mcpsdk.New(transport).Connect(t.Context())
	if err != nil {
		t.Fatalf("Connect() = %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// against returns a connection in memory and its bare other end.
func against(t *testing.T) (mcp.Connection, *peertest.Raw) {
	t.Helper()
	a, b := peer.Pipe()
	return open(t, a), peertest.NewRaw(t, b)
}

// reading is the next Read of conn: what it returned comes on the channel.
func reading(conn mcp.Connection) <-chan read {
	c := make(chan read, 1)
	go func() {
		msg, err := conn.Read(context.Background())
		c <- read{msg, err}
	}()
	return c
}

type read struct {
	msg jsonrpc.Message
	err error
}

func TestConnect(t *testing.T) {
	a, _ := peer.Pipe()
	transport := mcpsdk.New(a)
	conn, err := transport.Connect(t.Context())
	if err != nil || conn.SessionID() != "" {
		t.Errorf("Connect() = %v, %v", conn, err)
	}
	if conn, err := transport.Connect(t.Context()); !errors.Is(err, mcpsdk.ErrConnected) || conn != nil {
		t.Errorf("second Connect() = %v, %v, want %v", conn, err, mcpsdk.ErrConnected)
	}
	defer func() {
		if recover() == nil {
			t.Error("New(nil) did not panic")
		}
	}()
	mcpsdk.New(nil)
}

// One message of the SDK is one of the transport.
func TestReadAndWrite(t *testing.T) {
	conn, raw := against(t)
	const call, reply = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"<é>"}}`, `{"jsonrpc":"2.0","id":"x","result":{}}`
	for _, text := range []string{call, reply} {
		next := reading(conn)
		raw.Send(text)
		got := <-next
		if got.err != nil {
			t.Fatalf("Read() = %v", got.err)
		}
		if err := conn.Write(t.Context(), got.msg); err != nil {
			t.Fatalf("Write() = %v", err)
		}
		raw.Want(text)
	}
}

// What is no message ends the connection, and both ends are told why.
func TestReadRefuses(t *testing.T) {
	for text, code := range map[string]int{
		`{`:                                         1008,
		`{"jsonrpc":"2.0","id":1,"result":{}}{}`:    1008,
		`[{"jsonrpc":"2.0","method":"m"}]`:          1008,
		`{"jsonrpc":"1.0","method":"m"}`:            1008,
		`{"jsonrpc":"2.0","result":{}}`:             1008,
		"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}": 1007,
	} {
		t.Run(text, func(t *testing.T) {
			conn, raw := against(t)
			next := reading(conn)
			raw.Send(text)
			got := <-next
			var refused *mcpsdk.MessageError
			if !errors.As(got.err, &refused) || errors.Is(got.err, io.EOF) {
				t.Errorf("Read() = %v, %v, want a MessageError", got.msg, got.err)
			}
			if is := errors.Is(got.err, codec.ErrUTF8); is != (code == 1007) {
				t.Errorf("Read() = %v: is it the UTF-8? %t", got.err, is)
			}
			var told *wsconn.CloseError
			if err := raw.Ended(); !errors.As(err, &told) || told.Code != code {
				t.Errorf("the other end was told %v, want %d", err, code)
			}
		})
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, raw := against(t)
		next := reading(conn)
		synctest.Wait()
		for range 2 {
			if err := conn.Close(); err != nil {
				t.Errorf("Close() = %v, want nil", err)
			}
		}
		if err := (<-next).err; !errors.Is(err, peer.ErrClosed) || !strings.HasPrefix(err.Error(), "mcpsdk: read: ") {
			t.Errorf("Read() = %v, want %v", err, peer.ErrClosed)
		}
		err := conn.Write(t.Context(), &jsonrpc.Request{Method: "m"})
		if !errors.Is(err, peer.ErrClosed) || !strings.HasPrefix(err.Error(), "mcpsdk: write: ") {
			t.Errorf("Write() = %v, want %v", err, peer.ErrClosed)
		}
		if err := raw.Ended(); !errors.Is(err, io.EOF) {
			t.Errorf("the other end was told %v, want an orderly end", err)
		}
	})
}

func TestOrderlyEnd(t *testing.T) {
	conn, raw := against(t)
	raw.Close(nil)
	if _, err := conn.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("Read() = %v, want io.EOF", err)
	}
}

// slow is a transport whose writes take until they are let go.
type slow struct {
	peer.Transport
	inside chan context.Context
	leave  chan error
}

func (s *slow) Write(ctx context.Context, _ ...[]byte) error {
	s.inside <- ctx
	return <-s.leave
}

func newSlow() *slow {
	a, _ := peer.Pipe()
	return &slow{a, make(chan context.Context, 3), make(chan error)}
}

func TestWritesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newSlow()
		conn := open(t, below)
		done := make(chan error, 3)
		for range cap(done) {
			go func() { done <- conn.Write(t.Context(), &jsonrpc.Request{Method: "m"}) }()
		}
		for range cap(done) {
			synctest.Wait()
			if n := len(below.inside); n != 1 {
				t.Fatalf("%d writes at once, want 1", n)
			}
			<-below.inside
			below.leave <- nil
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Errorf("Write() = %v", err)
			}
		}
	})
}

// A caller that gives up waits for nobody, and cuts nothing.
func TestWriteGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newSlow()
		conn := open(t, below)
		first, giveUpFirst := context.WithCancel(t.Context())
		second, giveUpSecond := context.WithCancel(t.Context())
		done := make(chan error, 1)
		write := func(ctx context.Context) { done <- conn.Write(ctx, &jsonrpc.Request{Method: "m"}) }

		go write(first)
		running := <-below.inside
		go write(second)
		synctest.Wait()
		giveUpSecond()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Write() that waited = %v, want context.Canceled", err)
		}
		giveUpFirst()
		synctest.Wait()
		if len(done) != 0 || running.Err() != nil {
			t.Errorf("the Write that ran returned, or its context ended with %v", running.Err())
		}
		below.leave <- nil
		if err := <-done; err != nil {
			t.Errorf("Write() that ran = %v, want nil", err)
		}

		go write(first)
		if err := <-done; !errors.Is(err, context.Canceled) || len(below.inside) != 0 {
			t.Errorf("Write() with a context that has ended = %v, and %d were begun", err, len(below.inside))
		}

		broken := errors.New("broken")
		go write(t.Context())
		below.leave <- broken
		if err := <-done; !errors.Is(err, broken) {
			t.Errorf("Write() = %v, want %v", err, broken)
		}
	})
}

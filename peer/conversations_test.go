package peer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// The files under testdata are what base JSON-RPC 2.0 asks of a peer.
func TestConversations(t *testing.T) {
	peertest.Conversations(t, "testdata/*.txt", func() *peer.Options {
		return &peer.Options{Handler: playRegistry()}
	})
}

type sleepParams struct {
	MS int `json:"ms"`
}

const sleepMethod = peer.Method[sleepParams, int]("sleep")

// playRegistry holds the methods that conversations use.
//
//	echo      returns its params
//	fail      error 1234, "boom", {"k":1}
//	sleep     returns its ms after so many of them
//	bump      counts, also as a notification; takes {"ms":n} to be slow
//	total     how often bump was called
//	subtract  [minuend, subtrahend], or by these names
//	sum       of its elements
func playRegistry() *peer.Registry {
	var reg peer.Registry
	var bumps atomic.Int64
	reg.Handle("echo", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
		return req.Params, nil
	}))
	reg.Handle("fail", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
		return nil, &peer.Error{Code: 1234, Message: "boom", Data: json.RawMessage(`{"k":1}`)}
	}))
	sleepMethod.Handle(&reg, func(ctx context.Context, in sleepParams) (int, error) {
		select {
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
			return in.MS, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	})
	peer.Method[sleepParams, int64]("bump").Handle(&reg, func(_ context.Context, in sleepParams) (int64, error) {
		time.Sleep(time.Duration(in.MS) * time.Millisecond) // virtual time
		return bumps.Add(1), nil
	}, peer.OptionalParams())
	peer.Method[struct{}, int64]("total").Handle(&reg, func(context.Context, struct{}) (int64, error) {
		return bumps.Load(), nil
	})
	peer.Method[struct {
		Minuend    int `json:"minuend"`
		Subtrahend int `json:"subtrahend"`
	}, int]("subtract").Handle(&reg, func(_ context.Context, in struct {
		Minuend    int `json:"minuend"`
		Subtrahend int `json:"subtrahend"`
	}) (int, error) {
		return in.Minuend - in.Subtrahend, nil
	}, peer.Positional())
	peer.Method[[]int, int]("sum").Handle(&reg, func(_ context.Context, in []int) (int, error) {
		sum := 0
		for _, n := range in {
			sum += n
		}
		return sum, nil
	})
	return &reg
}

// gate is a handler that returns its params once the channel is closed or gives
// a value, or the cause of its context.
type gate chan struct{}

func (g gate) ServeRPC(ctx context.Context, req *peer.Request) (any, error) {
	select {
	case <-g:
		return req.Params, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// textLog is a log kept in memory.
type textLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *textLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *textLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *textLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// lines returns the lines that contain part.
func (l *textLog) lines(part string) []string {
	return slices.DeleteFunc(strings.Split(l.String(), "\n"), func(line string) bool {
		return !strings.Contains(line, part)
	})
}

// eventList collects events.
type eventList struct {
	mu  sync.Mutex
	all []peer.Event
}

func (l *eventList) add(ev peer.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, ev)
}

// of returns the events of one kind.
func (l *eventList) of(kind peer.EventKind) []peer.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(ev peer.Event) bool { return ev.Kind != kind })
}

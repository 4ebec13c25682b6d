package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// FuzzConn feeds a whole peer one message of any kind. What the codec takes it
// for says how often handlers may run and how many answers must come: a response
// is never answered, a notification neither, everything else exactly once, and
// nothing runs twice. The connection survives unless the text is not UTF-8.
func FuzzConn(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"m"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":1}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":1,"method":"m"},1,{"jsonrpc":"2.0","result":1}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`))
	files, err := os.ReadFile("peertest/wire/testdata/cases.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(files)) {
		var c struct{ Send []any }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			f.Fatal(err)
		}
		for _, item := range c.Send {
			if text, ok := item.(string); ok && len(text) < 4<<10 {
				f.Add([]byte(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var env codec.Envelope
		err := env.Decode(text, nil)
		var runs, answers int64
		switch {
		case errors.Is(err, codec.ErrUTF8):
			answers = -1 // the connection ends
		case err != nil || env.Fault != codec.NoFault:
			answers = 1
		default:
			ids := map[codec.Key]bool{}
			for _, m := range env.Messages {
				switch m.Kind {
				case codec.Call:
					answers++
					// Of calls with one id the first runs, and the others may not.
					if key := m.ID.Key(); !ids[key] {
						ids[key] = true
						runs++
					}
				case codec.Notification:
					if string(m.Method) != "$/cancelRequest" {
						runs++
					}
				case codec.Invalid, codec.Bare:
					answers++
				}
			}
		}
		synctest.Test(t, func(t *testing.T) {
			var ran atomic.Int64
			hold := make(chan struct{})
			raw, conn := peertest.Against(t, &peer.Options{
				NoBarrier: true,
				Handler: peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
					ran.Add(1)
					select {
					case <-hold: // so that a second call of the same id meets the first
					case <-ctx.Done():
					}
					return req.Params, nil
				}),
			})
			raw.Send(string(text))
			synctest.Wait()
			close(hold)
			synctest.Wait()
			if answers < 0 {
				if err := raw.Ended(); !strings.Contains(err.Error(), "1007") {
					t.Fatalf("%q ended the connection with %v, want 1007", text, err)
				}
				return
			}
			if conn.Err() != nil {
				t.Fatalf("%q ended the connection: %v", text, conn.Err())
			}
			var got int64
			for _, msg := range raw.Waiting() {
				var replies codec.Envelope
				if err := replies.Decode([]byte(msg), nil); err != nil {
					t.Fatalf("%q was answered with %q: %v", text, msg, err)
				}
				for _, m := range replies.Messages {
					if m.Kind != codec.Response {
						t.Fatalf("%q was answered with %q, a %v", text, msg, m.Kind)
					}
					got++
				}
			}
			if got != answers {
				t.Errorf("%q had %d answers, want %d", text, got, answers)
			}
			if n := ran.Load(); n != runs && !strings.Contains(string(text), "cancelRequest") {
				t.Errorf("%q ran %d handlers, want %d", text, n, runs)
			}
		})
	})
}

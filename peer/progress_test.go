package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

// The three forms that progress has, and where each has its token.
var (
	flat     = peer.ProgressDialect{Method: "notifications/progress", Token: "progressToken", Flat: true}
	workDone = peer.ProgressDialect{WorkDone: true, Tokens: []string{"/workDoneToken"}}
)

const steps = peer.Method[struct{}, int]("steps")

// reporting serves "steps", which reports all of these and returns how many.
func reporting(d peer.ProgressDialect, every time.Duration, all ...peer.Progress) *peer.Options {
	var reg peer.Registry
	steps.Handle(&reg, func(ctx context.Context, _ struct{}) (int, error) {
		progress, ok := peer.ProgressFrom(ctx)
		if !ok {
			return -1, nil
		}
		progress.Every(every)
		for _, p := range all {
			if err := progress.Report(p); err != nil {
				return 0, err
			}
		}
		return len(all), nil
	})
	return &peer.Options{Handler: &reg, Profile: &peer.Profile{Progress: d}}
}

// What a handler reports, as a bare end sees it: in the words of the dialect, for the
// token to the byte, all before the answer.
func TestProgressWire(t *testing.T) {
	all := []peer.Progress{{Message: "a"}, {Done: 2.5, Total: 10}, {Done: 1e21, Total: 4, Message: "\u00e9\n"}}
	for _, test := range []struct {
		name    string
		dialect peer.ProgressDialect
		params  string
		want    []string // params of the notifications, then the result
		method  string
	}{
		{"base", peer.ProgressDialect{}, `{"_meta":{"progressToken":"\u0061"}}`, []string{
			`{"token":"\u0061","value":{"progress":1,"message":"a"}}`,
			`{"token":"\u0061","value":{"progress":2.5,"total":10}}`,
			`{"token":"\u0061","value":{"progress":1000000000000000000000,"total":4,"message":"é\n"}}`, "3",
		}, "$/progress"},
		{"flat", flat, `{"_meta":{"progressToken":7.0}}`, []string{
			`{"progressToken":7.0,"progress":1,"message":"a"}`,
			`{"progressToken":7.0,"progress":2.5,"total":10}`,
			`{"progressToken":7.0,"progress":1000000000000000000000,"total":4,"message":"é\n"}`, "3",
		}, "notifications/progress"},
		{"work done", workDone, `{"workDoneToken":7}`, []string{
			`{"token":7,"value":{"kind":"begin","title":"steps"}}`,
			`{"token":7,"value":{"kind":"report","message":"a"}}`,
			`{"token":7,"value":{"kind":"report","percentage":25}}`,
			`{"token":7,"value":{"kind":"report","percentage":100,"message":"é\n"}}`,
			`{"token":7,"value":{"kind":"end"}}`, "3",
		}, "$/progress"},
		{"elsewhere", workDone, `{"_meta":{"progressToken":7}}`, []string{"-1"}, ""},
		{"no token", peer.ProgressDialect{}, `{}`, []string{"-1"}, ""},
		{"null token", peer.ProgressDialect{}, `{"_meta":{"progressToken":null}}`, []string{"-1"}, ""},
		{"object as token", peer.ProgressDialect{}, `{"_meta":{"progressToken":{}}}`, []string{"-1"}, ""},
		{"off", peer.ProgressDialect{Off: true}, `{"_meta":{"progressToken":7}}`, []string{"-1"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _ := peertest.Against(t, reporting(test.dialect, 0, all...))
				for _, batch := range []bool{false, true} {
					text := `{"jsonrpc":"2.0","id":5,"method":"steps","params":` + test.params + `}`
					last := len(test.want) - 1
					answer := result(5, test.want[last])
					if batch {
						text, answer = "["+text+"]", "["+answer+"]"
					}
					raw.Send(text)
					for _, params := range test.want[:last] {
						raw.Want(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, test.method, params))
					}
					raw.Want(answer)
				}
			})
		})
	}
}

// From end to end the caller sees what the handler reported, in every dialect.
func TestProgressEndToEnd(t *testing.T) {
	all := []peer.Progress{{Done: 25, Total: 100, Message: "a"}, {Done: 50, Total: 100}, {Done: 100, Total: 100, Message: "b"}}
	for name, d := range map[string]peer.ProgressDialect{"base": {}, "flat": flat, "work done": workDone} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := reporting(d, 0, all...)
				a, _ := peertest.Pair(t, &peer.Options{Profile: server.Profile}, server)
				var got []peer.Progress
				n, err := steps.Call(t.Context(), a, struct{}{}, peer.OnProgress(func(p peer.Progress) { got = append(got, p) }))
				if n != 3 || err != nil || !slices.Equal(got, all) {
					t.Errorf("Call() = %d, %v with %v, want %v", n, err, got, all)
				}
				got = nil
				for p := range peer.Updates(func(each peer.CallOption) { n, err = steps.Call(t.Context(), a, struct{}{}, each) }) {
					got = append(got, p)
					if len(got) == 2 {
						break
					}
				}
				if n != 3 || err != nil || !slices.Equal(got, all[:2]) {
					t.Errorf("Updates: %d, %v with %v, want %v", n, err, got, all[:2])
				}
			})
		})
	}
}

// How an own call asks: by a token no other has, beside what the user has there.
func TestProgressIsAskedFor(t *testing.T) {
	for _, test := range []struct {
		name    string
		dialect peer.ProgressDialect
		params  any
		want    string
		err     error
	}{
		{"base", peer.ProgressDialect{}, nil, `{"_meta":{"progressToken":"p1"}}`, nil},
		{"beside others", flat, json.RawMessage(`{"a":1,"_meta":{"x":1}}`), `{"a":1,"_meta":{"x":1,"progressToken":"p1"}}`, nil},
		{"work done", workDone, map[string]int{"a": 1}, `{"a":1,"workDoneToken":"p1"}`, nil},
		{"array", peer.ProgressDialect{}, []int{1}, "", peer.ErrNoPlace},
		{"off", peer.ProgressDialect{Off: true}, nil, "", peer.ErrNoPlace},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := peertest.Against(t, &peer.Options{Profile: &peer.Profile{Progress: test.dialect}})
				called := make(chan error, 1)
				go func() {
					called <- conn.Call(t.Context(), "m", test.params, nil, peer.OnProgress(func(peer.Progress) {}))
				}()
				synctest.Wait()
				if test.err != nil {
					if err := <-called; !errors.Is(err, test.err) || len(raw.Waiting()) > 0 {
						t.Errorf("Call() = %v, want %v, and nothing sent", err, test.err)
					}
					return
				}
				raw.Want(`{"jsonrpc":"2.0","id":1,"method":"m","params":` + test.want + `}`)
				raw.Send(result(1, "1"))
				if err := <-called; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// LSP's own forms: what says nothing is left out, and no percentage is none.
func TestWorkDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Profile: &peer.Profile{Progress: workDone}})
		var got []peer.Progress
		done := make(chan error, 1)
		go func() {
			done <- conn.Call(t.Context(), "m", nil, nil, peer.OnProgress(func(p peer.Progress) { got = append(got, p) }))
		}()
		raw.Receive()
		for _, value := range []string{
			`{"kind":"begin","title":"t","percentage":0}`, `{"kind":"begin","title":"t","message":"b"}`, `{"kind":"report","percentage":50}`,
			`{"kind":"report","message":"x"}`, `{"kind":"report","cancellable":true}`, `{"kind":"end"}`, `{"kind":"end","message":"bye"}`,
		} {
			raw.Send(progressText(`"p1"`, value))
		}
		raw.Send(result(1, "1"))
		want := []peer.Progress{{Message: "b"}, {Done: 50, Total: 100}, {Message: "x"}, {Message: "bye"}}
		if err := <-done; err != nil || !slices.Equal(got, want) {
			t.Errorf("Call() = %v with %v, want %v", err, got, want)
		}
	})
}

func progressText(token any, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/progress","params":{"token":%v,"value":%s}}`, token, value)
}

// The function runs in the caller's goroutine, and has seen all that arrived before
// the answer when Call returns, also where the answer did not wait for it.
func TestProgressBeforeReturn(t *testing.T) {
	for _, noBarrier := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			raw, conn := peertest.Against(t, &peer.Options{NoBarrier: noBarrier})
			var got []float64
			done := make(chan error, 1)
			go func() {
				done <- conn.Call(t.Context(), "m", nil, nil, peer.OnProgress(func(p peer.Progress) {
					time.Sleep(time.Second) // all arrive meanwhile
					got = append(got, p.Done)
				}))
			}()
			raw.Receive()
			raw.Send(progressText(`"p1"`, `{"progress":1}`), progressText(`"p1"`, `{"progress":2}`), progressText(`"p1"`, `{"progress":3}`), result(1, "1"))
			if err := <-done; err != nil || !slices.Equal(got, []float64{1, 2, 3}) {
				t.Errorf("Call() = %v after %v, want nil after 1, 2 and 3", err, got)
			}
		})
	}
}

// A flood of progress neither ends the connection nor grows without bound, and the
// newest is never dropped; meanwhile the connection goes on.
func TestProgressFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, &peer.Options{Limits: peer.Limits{Notifications: 4}})
		var got []float64
		release := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- conn.Call(t.Context(), "m", nil, nil, peer.OnProgress(func(p peer.Progress) {
				<-release
				got = append(got, p.Done)
			}))
		}()
		raw.Receive()
		const n = 5000
		for i := range n {
			raw.Send(progressText(`"p1"`, fmt.Sprintf(`{"progress":%d}`, i+1)))
		}
		synctest.Wait()
		other := make(chan error, 1)
		go func() { other <- conn.Call(t.Context(), "other", nil, nil) }()
		raw.Want(call(2, "other"))
		raw.Send(result(2, "1"), result(1, "1"))
		if err := <-other; err != nil {
			t.Errorf("another call = %v", err)
		}
		close(release)
		if err := <-done; err != nil || conn.Err() != nil {
			t.Fatalf("Call() = %v, connection %v", err, conn.Err())
		}
		dropped := conn.Stats().Events[peer.DroppedProgress]
		if len(got)+int(dropped) != n || dropped == 0 || !slices.IsSorted(got) || got[len(got)-1] != n {
			t.Errorf("%d seen, the last %v, and %d dropped of %d", len(got), got[len(got)-1], dropped, n)
		}
		// Large ones count by their bytes.
		go func() {
			done <- conn.Call(t.Context(), "m", nil, nil, peer.OnProgress(func(peer.Progress) { time.Sleep(time.Second) }))
		}()
		raw.Receive()
		before := conn.Stats().Events[peer.DroppedProgress]
		for i := range 10 {
			raw.Send(progressText(`"p3"`, fmt.Sprintf(`{"progress":%d,"message":%q}`, i+1, strings.Repeat("x", 100<<10))))
		}
		raw.Send(result(3, "1"))
		if err := <-done; err != nil || conn.Stats().Events[peer.DroppedProgress] < before+6 {
			t.Errorf("Call() = %v with %d dropped, want some of 1 MB", err, conn.Stats().Events[peer.DroppedProgress]-before)
		}
	})
}

// Progress with the token of no call, and what comes after the answer, is counted and
// goes nowhere; a handler for the method gets what is not for a call.
func TestProgressForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		seen := 0
		done := make(chan error, 1)
		go func() {
			done <- conn.Call(t.Context(), "m", nil, nil, peer.OnProgress(func(peer.Progress) { seen++ }))
		}()
		raw.Receive()
		raw.Send(progressText(`"p2"`, `{"progress":1}`), progressText(1, `{"progress":1}`), progressText(`{}`, `{"progress":1}`),
			`{"jsonrpc":"2.0","method":"$/progress"}`, `{"jsonrpc":"2.0","method":"$/progress","params":["p1"]}`,
			progressText(`"p1"`, `7`), progressText(`"p1"`, `{"x":1}`), progressText(`"p1"`, `{"progress":"x"}`),
			result(1, "1"), progressText(`"p1"`, `{"progress":9}`))
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if seen != 1 || conn.Stats().Events[peer.UnknownToken] != 6 || conn.Stats().Events[peer.RefusedNotification] != 0 {
			t.Errorf("seen %d, events %v, want 1 (that of no number) and 6 unknown tokens", seen, conn.Stats().Events)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		handled := make(chan string, 8)
		reg.HandleNotification("$/progress", peer.HandlerFunc(func(_ context.Context, req *peer.Request) (any, error) {
			handled <- string(req.Params)
			return nil, nil
		}))
		raw, conn := peertest.Against(t, &peer.Options{Handler: &reg})
		done := make(chan error, 1)
		go func() {
			done <- conn.Call(t.Context(), "m", nil, nil, peer.OnProgress(func(peer.Progress) {}))
		}()
		raw.Receive()
		raw.Send(progressText(`"p1"`, `{"progress":1}`), progressText(`"server"`, `{"kind":"begin"}`), result(1, "1"))
		if got := <-handled; got != `{"token":"server","value":{"kind":"begin"}}` || len(handled) > 0 {
			t.Errorf("handled %s", got)
		}
		<-done
	})
}

// Nothing leaves after the answer, nothing that does not increase, nothing that is no
// number, and nothing once the call was given up.
func TestProgressEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		var kept *peer.Reporter
		var ctx context.Context
		steps.Handle(&reg, func(c context.Context, _ struct{}) (int, error) {
			ctx = c
			progress, ok := peer.ProgressFrom(c)
			if !ok {
				return 0, nil
			}
			kept = progress
			if again, _ := peer.ProgressFrom(c); again != kept {
				t.Error("a second reporter for one call")
			}
			for _, step := range []struct {
				p    peer.Progress
				want error
			}{
				{peer.Progress{Done: -3}, nil},
				{peer.Progress{Done: -3}, peer.ErrNotIncreasing},
				{peer.Progress{Done: 2}, nil},
				{peer.Progress{Done: 1}, peer.ErrNotIncreasing},
				{peer.Progress{Done: math.NaN()}, peer.ErrNotIncreasing},
				{peer.Progress{Done: math.Inf(1)}, peer.ErrNotIncreasing},
				{peer.Progress{Done: 3, Total: math.Inf(1)}, peer.ErrNotIncreasing},
				{peer.Progress{}, nil},
			} {
				if err := kept.Report(step.p); !errors.Is(err, step.want) {
					t.Errorf("Report(%v) = %v, want %v", step.p, err, step.want)
				}
			}
			return 1, nil
		})
		hang := peer.Method[struct{}, int]("hang")
		hang.Handle(&reg, func(c context.Context, _ struct{}) (int, error) {
			p, _ := peer.ProgressFrom(c)
			_ = p.Report(peer.Progress{Done: 1})
			<-c.Done()
			if err := p.Report(peer.Progress{Done: 2}); !errors.Is(err, context.Canceled) {
				t.Errorf("Report() = %v after the cancel", err)
			}
			return 0, c.Err()
		})
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		raw.Send(`{"jsonrpc":"2.0","id":1,"method":"steps","params":{"_meta":{"progressToken":1}}}`)
		raw.Want(progressText(1, `{"progress":-3}`), progressText(1, `{"progress":2}`), progressText(1, `{"progress":3}`), result(1, "1"))
		synctest.Wait()
		if err := kept.Report(peer.Progress{Done: 9}); !errors.Is(err, peer.ErrAnswered) {
			t.Errorf("Report() = %v after the answer, want ErrAnswered", err)
		}
		if _, ok := peer.ProgressFrom(ctx); ok {
			t.Error("ProgressFrom found one after the answer")
		}
		raw.Send(`{"jsonrpc":"2.0","id":2,"method":"hang","params":{"_meta":{"progressToken":1}}}`)
		raw.Want(progressText(1, `{"progress":1}`))
		raw.Send(cancelOf(2))
		raw.Want(cancelled(2))
		raw.Send(`{"jsonrpc":"2.0","method":"steps","params":{"_meta":{"progressToken":1}}}`) // nobody waits for a notification
		synctest.Wait()
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("left behind: %q", got)
		}
	})
}

// With Every the newest waits for its time and the last leaves before the answer; of
// a call that ended in silence nothing more does.
func TestProgressEvery(t *testing.T) {
	report := func(ctx context.Context, at ...int) {
		p, _ := peer.ProgressFrom(ctx)
		p.Every(100 * time.Millisecond)
		began := time.Now()
		for i, ms := range at {
			time.Sleep(time.Duration(ms)*time.Millisecond - time.Since(began))
			_ = p.Report(peer.Progress{Done: float64(i + 1)})
		}
	}
	for _, test := range []struct {
		name   string
		d      peer.ProgressDialect
		silent bool
		at     []int // ms when reported
		cancel bool
		want   []string // "ms:progress"
	}{
		{"all at once", peer.ProgressDialect{}, false, []int{0, 1, 2, 3}, false, []string{"0:1", "3:4"}},
		{"over time", peer.ProgressDialect{}, false, []int{0, 10, 90, 101, 150, 250}, false, []string{"0:1", "100:3", "200:5", "250:6"}},
		{"slow enough", peer.ProgressDialect{}, false, []int{0, 100, 200}, false, []string{"0:1", "100:2", "200:3"}},
		{"silent", peer.ProgressDialect{}, true, []int{0, 1}, true, []string{"0:1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reg peer.Registry
				steps.Handle(&reg, func(ctx context.Context, _ struct{}) (int, error) {
					report(ctx, test.at...)
					if test.cancel {
						<-ctx.Done()
					}
					return 1, ctx.Err()
				})
				raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, Profile: &peer.Profile{Progress: test.d, Cancel: peer.Cancel{Silent: test.silent}}})
				began := time.Now()
				raw.Send(`{"jsonrpc":"2.0","id":1,"method":"steps","params":{"_meta":{"progressToken":1}}}`)
				var got []string
				for range test.want {
					var m struct {
						Params struct{ Value struct{ Progress int } }
					}
					text := raw.Receive()
					if err := json.Unmarshal([]byte(text), &m); err != nil || m.Params.Value.Progress == 0 {
						t.Fatalf("received %s", text)
					}
					got = append(got, fmt.Sprintf("%d:%d", time.Since(began).Milliseconds(), m.Params.Value.Progress))
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("left at %q, want %q", got, test.want)
				}
				if test.cancel {
					time.Sleep(10 * time.Millisecond)
					raw.Send(cancelOf(1))
					time.Sleep(time.Second)
					if left := raw.Waiting(); len(left) > 0 {
						t.Errorf("after the cancel left %q", left)
					}
					return
				}
				raw.Want(result(1, "1"))
				time.Sleep(time.Second)
				if left := raw.Waiting(); len(left) > 0 {
					t.Errorf("after the answer left %q", left)
				}
			})
		})
	}
}

// A caller whose context ends returns at once and drops the rest; its token is free.
func TestProgressCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, conn := peertest.Against(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		done := make(chan error, 1)
		go func() {
			done <- conn.Call(ctx, "m", nil, nil, peer.OnProgress(func(peer.Progress) { seen++; cancel() }))
		}()
		raw.Receive()
		raw.Send(progressText(`"p1"`, `{"progress":1}`))
		if err := <-done; !errors.Is(err, context.Canceled) || seen != 1 {
			t.Errorf("Call() = %v after %d, want its context's error", err, seen)
		}
		raw.Want(cancelOf(1))
		raw.Send(progressText(`"p1"`, `{"progress":2}`))
		synctest.Wait()
		if n := conn.Stats().Events[peer.UnknownToken]; n != 1 || seen != 1 {
			t.Errorf("%d unknown tokens, seen %d, want 1 and 1", n, seen)
		}
	})
}

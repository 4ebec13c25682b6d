package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/stream"
)

type span struct {
	From int `json:"from"`
	To   int `json:"to,omitzero"`
}

const (
	counts = stream.Topic[span, int]("counts")                 // from From to To, then silence
	watch  = stream.Topic[struct{}, int]("watch")              // whatever a test publishes
	echoes = stream.Topic[[]json.RawMessage, string]("echoes") // its arguments
)

// spanning publishes counts, and stays until it is told to end.
func spanning(ctx context.Context, in span, send func(int) error) error {
	for i := in.From; i <= in.To; i++ {
		if err := send(i); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// publishing serves topics in the namespace eth.
func publishing(t *stream.Topics) *peer.Options {
	t.Namespace = "eth"
	var reg peer.Registry
	t.Register(&reg)
	return &peer.Options{Handler: &reg}
}

func ethSubscribe(id int, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_subscribe","params":%s}`, id, params)
}

func ethUnsubscribe(id int, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_unsubscribe","params":%s}`, id, params)
}

func ethPush(id, member, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":%q,%q:%s}}`, id, member, value)
}

// subscribed sends a subscribe call and returns the id it is answered with.
func subscribed(t *testing.T, raw *peertest.Raw, params string) string {
	t.Helper()
	raw.Send(ethSubscribe(1, params))
	return idOf(t, raw.Receive())
}

var answerWithID = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":\d+,"result":"(0x[0-9a-f]{24,32})"\}$`)

func idOf(t *testing.T, message string) string {
	t.Helper()
	m := answerWithID.FindStringSubmatch(message)
	if m == nil {
		t.Fatalf("received %s, want an answer with an id", message)
	}
	return m[1]
}

// The whole of it on the wire: an id nobody had before, items in order, and silence after
// the end.
func TestTopicByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		causes := make(chan error, 2)
		counts.Handle(&topics, func(ctx context.Context, in span, send func(int) error) error {
			err := spanning(ctx, in, send)
			causes <- err
			if failure := send(0); failure != err {
				t.Errorf("send after the end = %v, want %v", failure, err)
			}
			return err
		})
		raw, _ := peertest.Against(t, publishing(&topics))
		id := subscribed(t, raw, `["counts",1,3]`)
		raw.Want(ethPush(id, "result", "1"), ethPush(id, "result", "2"), ethPush(id, "result", "3"))
		raw.Send(ethUnsubscribe(2, `["`+id+`"]`))
		raw.Want(answer(2, "true"))
		if err := <-causes; err != stream.ErrUnsubscribed {
			t.Errorf("the cause is %v", err)
		}
		synctest.Wait()
		raw.Send(ethUnsubscribe(3, `["`+id+`"]`), ethUnsubscribe(4, `["0x0"]`))
		synctest.Wait()
		if got := raw.Waiting(); len(got) != 2 || !strings.Contains(got[0]+got[1], answer(3, "false")) || !strings.Contains(got[0]+got[1], answer(4, "false")) {
			t.Errorf("after the end came %q", got)
		}
		if other := subscribed(t, raw, `["counts",1]`); other == id {
			t.Errorf("the id %s came twice", id)
		}
	})
}

// The answer is before the first item, however soon that is there: with many calls at a
// time, and with more than one goroutine that sends.
func TestTopicAnswersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, calls = 10, 300
		var topics stream.Topics
		counts.Handle(&topics, func(_ context.Context, in span, send func(int) error) error {
			for i := in.From; i <= in.To; i++ {
				if err := send(i); err != nil {
					return err
				}
			}
			return nil
		})
		raw, _ := peertest.Against(t, publishing(&topics))
		next := map[string]int{} // what has to come, by id
		for i := range rounds * calls * 4 {
			if i%(calls*4) == 0 {
				for id := range calls {
					raw.Send(ethSubscribe(id+1, `["counts",1,3]`))
				}
			}
			m := raw.Receive()
			if found := answerWithID.FindStringSubmatch(m); found != nil {
				next[found[1]] = 1
				continue
			}
			var push struct {
				Params struct {
					Subscription string
					Result       int
				}
			}
			if err := json.Unmarshal([]byte(m), &push); err != nil {
				t.Fatal(err)
			}
			if want := next[push.Params.Subscription]; push.Params.Result != want || want == 0 {
				t.Fatalf("received %s where item %d was to come; 0 is before the answer", m, want)
			}
			next[push.Params.Subscription]++
		}
		synctest.Wait()
		if n, conns := topics.Held(); n+conns != 0 {
			t.Errorf("%d subscriptions of %d connections are left", n, conns)
		}
	})
}

// In an array the answer is there when the last of its calls has one.
func TestTopicInBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		counts.Handle(&topics, spanning)
		topics.Namespace = "eth"
		var reg peer.Registry
		topics.Register(&reg)
		release := make(chan struct{})
		reg.Handle("slow", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) {
			<-release
			return nil, nil
		}))
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		raw.Send(`[` + ethSubscribe(1, `["counts",1,1]`) + `,` + request(2, `{}`) + `,` + ethSubscribe(3, `["counts",2,2]`) +
			`,{"jsonrpc":"2.0","id":4,"method":"slow"},` + ethUnsubscribe(5, `["0x1"]`) + `]`)
		synctest.Wait()
		if early := raw.Waiting(); len(early) > 0 {
			t.Fatalf("before the last answer came %q", early)
		}
		close(release)
		var answers []struct {
			ID     int
			Result any
		}
		if err := json.Unmarshal([]byte(raw.Receive()), &answers); err != nil || len(answers) != 5 {
			t.Fatalf("%d answers, %v", len(answers), err)
		}
		items := map[string]bool{}
		for _, a := range answers {
			if id, ok := a.Result.(string); ok {
				items[ethPush(id, "result", fmt.Sprint(1+a.ID/2))] = true
			}
		}
		for range 2 {
			if m := raw.Receive(); !items[m] {
				t.Errorf("received %s, want of %v", m, items)
			}
		}
	})
}

// No item follows the answer to unsubscribe, from however many goroutines they come.
func TestTopicUnsubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		watch.Handle(&topics, func(ctx context.Context, _ struct{}, send func(int) error) error {
			done := make(chan error)
			for range 4 {
				go func() {
					for ctx.Err() == nil {
						if err := send(1); err != nil {
							break
						}
					}
					done <- send(2)
				}()
			}
			for range 4 {
				if err := <-done; err != stream.ErrUnsubscribed {
					t.Errorf("send after the end = %v", err)
				}
			}
			return errors.New("nobody listens")
		})
		raw, _ := peertest.Against(t, publishing(&topics))
		for range 50 {
			id := subscribed(t, raw, `["watch"]`)
			item := ethPush(id, "result", "1")
			raw.Want(item)
			raw.Send(ethUnsubscribe(2, `["`+id+`"]`))
			for m := raw.Receive(); m != answer(2, "true"); m = raw.Receive() {
				if m != item {
					t.Fatalf("received %s", m)
				}
			}
			synctest.Wait()
			if late := raw.Waiting(); len(late) > 0 {
				t.Fatalf("after the answer came %q", late)
			}
		}
		if n, conns := topics.Held(); n+conns != 0 {
			t.Errorf("%d subscriptions of %d connections are left", n, conns)
		}
	})
}

// The end of a connection ends what was subscribed on it, and no other one.
func TestTopicConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var topics stream.Topics
		causes := make(chan error, 3)
		watch.Handle(&topics, func(ctx context.Context, _ struct{}, send func(int) error) error {
			if ctx.Value(key{}) != "value" {
				t.Error("the values of the connection are missing")
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return send(1)
		})
		opts := publishing(&topics)
		opts.BaseContext = context.WithValue(t.Context(), key{}, "value")
		raw, conn := peertest.Against(t, opts)
		other, _ := peertest.Against(t, opts)
		subscribed(t, raw, `["watch"]`)
		subscribed(t, raw, `["watch"]`)
		id := subscribed(t, other, `["watch"]`)
		raw.Close(nil)
		<-conn.Done()
		synctest.Wait()
		for range 2 {
			if cause := <-causes; cause == nil || cause != context.Cause(conn.Context()) {
				t.Errorf("the cause is %v, that of the connection %v", cause, context.Cause(conn.Context()))
			}
		}
		if n, conns := topics.Held(); n != 1 || conns != 1 {
			t.Errorf("%d subscriptions of %d connections are left, want that of the other one", n, conns)
		}
		other.Send(ethUnsubscribe(2, `["`+id+`"]`))
		other.Want(answer(2, "true"))
	})
}

// Who knows an id of another connection cannot end it.
func TestTopicForeignID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		items := make(chan int)
		watch.Handle(&topics, func(ctx context.Context, _ struct{}, send func(int) error) error {
			for item := range items {
				if err := send(item); err != nil {
					return err
				}
			}
			return nil
		})
		opts := publishing(&topics)
		raw, _ := peertest.Against(t, opts)
		foreign, _ := peertest.Against(t, opts)
		id := subscribed(t, raw, `["watch"]`)
		foreign.Send(ethUnsubscribe(1, `["`+id+`"]`))
		foreign.Want(answer(1, "false"))
		items <- 7
		raw.Want(ethPush(id, "result", "7"))
		close(items)
	})
}

// A connection has so many subscriptions and no more; one whose function does not
// return counts on, and other connections have places of their own.
func TestTopicPerConn(t *testing.T) {
	for _, code := range []peer.Code{0, -31000} {
		synctest.Test(t, func(t *testing.T) {
			topics := stream.Topics{PerConn: 2}
			release := make(chan struct{})
			watch.Handle(&topics, func(context.Context, struct{}, func(int) error) error {
				<-release
				return nil
			})
			opts := publishing(&topics)
			opts.Profile = &peer.Profile{Overloaded: code}
			if code == 0 {
				code = -32010
			}
			refused := fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"error":{"code":%d,"message":"too many subscriptions"}}`, code)
			raw, _ := peertest.Against(t, opts)
			other, _ := peertest.Against(t, opts)
			id := subscribed(t, raw, `["watch"]`)
			subscribed(t, raw, `["watch"]`)
			raw.Send(ethSubscribe(9, `["watch"]`))
			raw.Want(refused)
			raw.Send(ethUnsubscribe(2, `["`+id+`"]`))
			raw.Want(answer(2, "true"))
			raw.Send(ethSubscribe(9, `["watch"]`))
			raw.Want(refused)
			raw.Send(ethUnsubscribe(2, `["`+id+`"]`))
			raw.Want(answer(2, "false"))
			subscribed(t, other, `["watch"]`)
			close(release)
			synctest.Wait()
			subscribed(t, raw, `["watch"]`)
		})
	}
}

// 1,024 subscriptions are the default.
func TestTopicPerConnDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		counts.Handle(&topics, spanning)
		raw, _ := peertest.Against(t, publishing(&topics))
		for range 1024 {
			subscribed(t, raw, `["counts",1]`)
		}
		raw.Send(ethSubscribe(9, `["counts",1]`))
		raw.Want(`{"jsonrpc":"2.0","id":9,"error":{"code":-32010,"message":"too many subscriptions"}}`)
	})
}

// Params that are none, and arguments that fit and do not.
func TestTopicParams(t *testing.T) {
	const noArray = "invalid params: want an array that begins with a string"
	for _, test := range []struct{ call, want string }{
		{ethSubscribe(1, `{}`), noArray},
		{ethSubscribe(1, `{"0":"counts"}`), noArray},
		{`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe"}`, noArray},
		{ethSubscribe(1, `[]`), noArray},
		{ethSubscribe(1, `[ ]`), noArray},
		{ethSubscribe(1, `[1,"counts"]`), noArray},
		{ethSubscribe(1, `[["counts"]]`), noArray},
		{ethSubscribe(1, `[null]`), "invalid params: no such topic"},
		{ethSubscribe(1, `["Counts"]`), "invalid params: no such topic"},
		{ethSubscribe(1, `["eth_subscribe"]`), "invalid params: no such topic"},
		{ethSubscribe(1, `["counts","x"]`), "invalid params: /0: want number, got string"},
		{ethSubscribe(1, `["counts",1,[2]]`), "invalid params: /1: want number, got array"},
		{ethSubscribe(1, `["counts",1,2,3]`), "invalid params: /2: at most 2 elements are known"},
		{ethUnsubscribe(1, `{}`), noArray},
		{`{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe"}`, noArray},
		{ethUnsubscribe(1, `[]`), noArray},
		{ethUnsubscribe(1, `[7]`), noArray},
		{ethUnsubscribe(1, `["0x1","0x2"]`), "invalid params: want one id"},
		{ethSubscribe(1, "[ \"echoes\"\t,\n1 , {\"a\" : [ ]} ]"), ""},
		{ethSubscribe(1, `["\u0065choes" ]`), ""},
		{ethSubscribe(1, `["counts",null,null]`), ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var topics stream.Topics
			counts.Handle(&topics, spanning)
			echoes.Handle(&topics, func(_ context.Context, in []json.RawMessage, send func(string) error) error {
				return send(fmt.Sprintf("%s", in))
			})
			raw, conn := peertest.Against(t, publishing(&topics))
			raw.Send(test.call)
			m := raw.Receive()
			if test.want == "" {
				idOf(t, m)
			} else if !strings.Contains(m, `"code":-32602,`) || !strings.Contains(m, test.want) {
				t.Errorf("%s\nis answered with %s\nwant %s", test.call, m, test.want)
			}
			synctest.Wait()
			if conn.Err() != nil {
				t.Error(conn.Err())
			}
			if n, _ := topics.Held(); test.want != "" && n > 0 {
				t.Errorf("%s leaves a subscription", test.call)
			}
		})
	}
}

// Arguments that are a slice come as they are.
func TestTopicArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		echoes.Handle(&topics, func(_ context.Context, in []json.RawMessage, send func(string) error) error {
			return send(fmt.Sprintf("%d: %s", len(in), in))
		})
		raw, _ := peertest.Against(t, publishing(&topics))
		for args, want := range map[string]string{
			"":                            "0: []",
			` , 1`:                        "1: [1]",
			`,[",",{}],"]",null,{"a":[]}`: `4: [[",",{}] \"]\" null {\"a\":[]}]`,
		} {
			id := subscribed(t, raw, `["echoes"`+args+`]`)
			raw.Want(ethPush(id, "result", `"`+strings.ReplaceAll(strings.ReplaceAll(want, `\"`, `"`), `"`, `\"`)+`"`))
		}
	})
}

// A notification subscribes to nothing, and ends what it names.
func TestTopicByNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		counts.Handle(&topics, spanning)
		raw, conn := peertest.Against(t, publishing(&topics))
		raw.Send(`{"jsonrpc":"2.0","method":"eth_subscribe","params":["counts",1,1]}`)
		synctest.Wait()
		if n, _ := topics.Held(); n != 0 || conn.Stats().Events[peer.RefusedNotification] != 1 {
			t.Errorf("%d subscriptions, %v", n, conn.Stats().Events)
		}
		id := subscribed(t, raw, `["counts",1]`)
		raw.Send(`{"jsonrpc":"2.0","method":"eth_unsubscribe","params":["` + id + `"]}`)
		synctest.Wait()
		if n, _ := topics.Held(); n != 0 {
			t.Errorf("%d subscriptions", n)
		}
		if got := raw.Waiting(); len(got) > 0 {
			t.Errorf("received %q", got)
		}
	})
}

// What the subscriber is told when the publisher ends it, and what is logged.
func TestTopicFails(t *testing.T) {
	const internal = `{"code":-32603,"message":"internal error"}`
	for _, test := range []struct {
		name   string
		end    func(send func(int) error) error
		want   string // "" for nothing
		logged string
	}{
		{"nil", func(func(int) error) error { return nil }, "", ""},
		{"own", func(func(int) error) error {
			return fmt.Errorf("wrapped: %w", &peer.Error{Code: 7, Message: `a "<b>"`, Data: json.RawMessage(`{ "c":1.0}`)})
		}, `{"code":7,"message":"a \"<b>\"","data":{ "c":1.0}}`, ""},
		{"any", func(func(int) error) error { return errors.New("secret") }, internal, "secret"},
		{"bad data", func(func(int) error) error {
			return &peer.Error{Code: 7, Message: "m", Data: json.RawMessage(`{`)}
		}, internal, "error 7"},
		{"another's", func(func(int) error) error {
			return &peer.CallError{Method: "other", Err: &peer.Error{Code: 7, Message: "m"}}
		}, internal, "other"},
		{"forwarded", func(func(int) error) error {
			return peer.Forward(&peer.CallError{Method: "other", Err: &peer.Error{Code: 7, Message: "m"}})
		}, `{"code":7,"message":"m"}`, ""},
		{"panic", func(func(int) error) error { panic("on purpose") }, internal, "on purpose"},
		{"exit", func(func(int) error) error { runtime.Goexit(); return nil }, internal, "did not return"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				topics := stream.Topics{Logger: slog.New(slog.NewTextHandler(&log, nil))}
				late := make(chan func(int) error, 1)
				watch.Handle(&topics, func(_ context.Context, _ struct{}, send func(int) error) error {
					late <- send
					if err := send(1); err != nil {
						t.Error(err)
					}
					return test.end(send)
				})
				raw, _ := peertest.Against(t, publishing(&topics))
				id := subscribed(t, raw, `["watch"]`)
				raw.Want(ethPush(id, "result", "1"))
				if test.want != "" {
					raw.Want(ethPush(id, "error", test.want))
				}
				synctest.Wait()
				if err := (<-late)(2); err != stream.ErrEnded {
					t.Errorf("send after the end = %v", err)
				}
				raw.Send(ethUnsubscribe(2, `["`+id+`"]`))
				raw.Want(answer(2, "false"))
				if got := log.String(); !strings.Contains(got, test.logged) || (test.logged == "") != (got == "") {
					t.Errorf("logged %q, want %q", got, test.logged)
				}
			})
		})
	}
}

// picky is an item of which only one that is not empty has a JSON form.
type picky string

func (p picky) MarshalJSON() ([]byte, error) {
	if p == "" {
		return nil, errors.New("secret")
	}
	return []byte(`"good"`), nil
}

// An item that has no JSON form fails alone, and its text is not logged.
func TestTopicItemError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const choices = stream.Topic[struct{}, picky]("choices")
		var log bytes.Buffer
		topics := stream.Topics{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		choices.Handle(&topics, func(_ context.Context, _ struct{}, send func(picky) error) error {
			err := send("")
			if err == nil || !strings.Contains(err.Error(), "secret") {
				t.Errorf("send = %v", err)
			}
			if err := send("x"); err != nil {
				t.Error(err)
			}
			return fmt.Errorf("giving up: %w", err)
		})
		raw, _ := peertest.Against(t, publishing(&topics))
		id := subscribed(t, raw, `["choices"]`)
		raw.Want(ethPush(id, "result", `"good"`), ethPush(id, "error", `{"code":-32603,"message":"internal error"}`))
		synctest.Wait()
		if got := log.String(); strings.Contains(got, "secret") || !strings.Contains(got, "topic=choices") {
			t.Errorf("logged %q", got)
		}
	})
}

// What the function of a topic leaves running sends nothing after the error.
func TestTopicFailsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		watch.Handle(&topics, func(_ context.Context, _ struct{}, send func(int) error) error {
			begun := make(chan struct{})
			go func() {
				for err := send(1); err == nil; err = send(1) {
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			}()
			<-begun
			return &peer.Error{Code: 7, Message: "m"}
		})
		raw, _ := peertest.Against(t, publishing(&topics))
		for range 100 {
			id := subscribed(t, raw, `["watch"]`)
			for m := ""; m != ethPush(id, "error", `{"code":7,"message":"m"}`); m = raw.Receive() {
				if m != "" && m != ethPush(id, "result", "1") {
					t.Fatalf("received %s", m)
				}
			}
			synctest.Wait()
			if late := raw.Waiting(); len(late) > 0 {
				t.Fatalf("after the error came %q", late)
			}
		}
	})
}

// send waits while nobody reads, and no longer than the subscription lasts.
func TestTopicQueueFull(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var topics stream.Topics
			sent, ended := 0, make(chan error, 1)
			watch.Handle(&topics, func(_ context.Context, _ struct{}, send func(int) error) error {
				var err error
				for ; err == nil; sent++ {
					err = send(1)
				}
				ended <- err
				return err
			})
			opts := publishing(&topics)
			opts.Limits.QueueBytes = 4 << 10
			a, b := peer.Pipe()
			conn := peertest.Start(t, b, opts)
			if err := a.Write(t.Context(), []byte(ethSubscribe(1, `["watch"]`))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case err := <-ended:
				t.Fatalf("%d items went nowhere, then %v", sent, err)
			default:
			}
			if sent == 0 || sent > 1000 {
				t.Errorf("%d items are queued", sent)
			}
			if closed {
				_ = conn.Close()
				if err := <-ended; !errors.Is(err, peer.ErrClosed) {
					t.Errorf("send = %v, want the cause of the connection", err)
				}
				return
			}
			raw := peertest.NewRaw(t, a)
			id := idOf(t, raw.Receive())
			raw.Send(ethUnsubscribe(2, `["`+id+`"]`))
			if err := <-ended; err != stream.ErrUnsubscribed {
				t.Errorf("send = %v, want ErrUnsubscribed", err)
			}
		})
	}
}

// A publisher that never has enough, and keeps the queue from being empty, does not hold
// up Shutdown.
func TestTopicShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics stream.Topics
		ended := make(chan error, 1)
		watch.Handle(&topics, func(_ context.Context, _ struct{}, send func(int) error) error {
			var err error
			for err == nil {
				err = send(1)
				time.Sleep(time.Millisecond)
			}
			ended <- err
			return err
		})
		slow, b := peer.Pipe()
		conn := peertest.Start(t, b, publishing(&topics))
		if err := slow.Write(t.Context(), []byte(ethSubscribe(1, `["watch"]`))); err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			for {
				time.Sleep(time.Millisecond + time.Microsecond)
				if _, err := slow.Read(context.Background(), nil); err != nil {
					return
				}
			}
		}()
		time.Sleep(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := conn.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown() = %v", err)
		}
		if err := <-ended; !errors.Is(err, peer.ErrShutdown) {
			t.Errorf("send = %v", err)
		}
		<-read
	})
}

// What was not answered does not start: where the caller gave up in a profile that
// answers with silence, or has gone.
func TestTopicNotAnswered(t *testing.T) {
	for _, gone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			topics := stream.Topics{Namespace: "eth"}
			watch.Handle(&topics, func(context.Context, struct{}, func(int) error) error {
				t.Error("it started")
				return nil
			})
			var reg peer.Registry
			topics.Register(&reg)
			linger := func(h peer.Handler) peer.Handler {
				return peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
					id, err := h.ServeRPC(ctx, req)
					<-ctx.Done()
					return id, err
				})
			}
			raw, conn := peertest.Against(t, &peer.Options{Handler: peer.Chain(&reg, linger), Profile: &peer.Profile{Cancel: peer.Cancel{Silent: true}}})
			raw.Send(ethSubscribe(1, `["watch"]`))
			synctest.Wait()
			if n, _ := topics.Held(); n != 1 {
				t.Fatalf("%d subscriptions are about to start", n)
			}
			if gone {
				raw.Close(nil)
				<-conn.Done()
			} else {
				raw.Send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
			}
			synctest.Wait()
			if n, conns := topics.Held(); n+conns != 0 {
				t.Errorf("%d subscriptions of %d connections are left", n, conns)
			}
			if got := raw.Waiting(); len(got) > 0 {
				t.Errorf("received %q", got)
			}
		})
	}
}

// Mistakes of a registration panic where they are made.
func TestTopicRegistration(t *testing.T) {
	nothing := func(context.Context, struct{}, func(int) error) error { return nil }
	for name, wrong := range map[string]func(){
		"nil":       func() { watch.Handle(&stream.Topics{}, nil) },
		"twice":     func() { var s stream.Topics; watch.Handle(&s, nothing); watch.Handle(&s, nothing) },
		"late":      func() { s := stream.Topics{Namespace: "eth"}; s.Register(&peer.Registry{}); watch.Handle(&s, nothing) },
		"namespace": func() { (&stream.Topics{}).Register(&peer.Registry{}) },
		"again":     func() { var r peer.Registry; s := stream.Topics{Namespace: "eth"}; s.Register(&r); s.Register(&r) },
		"scalar": func() {
			stream.Topic[string, int]("x").Handle(&stream.Topics{}, func(context.Context, string, func(int) error) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			wrong()
		})
	}
}

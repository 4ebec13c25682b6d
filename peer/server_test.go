package peer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
	"github.com/duetrpc/duet/wsconn"
)

// This file is the one that opens real sockets, on loopback.

// serverPatience bounds what may only take long where something is broken.
const serverPatience = 20 * time.Second

// eventually fails the test if ok does not come to hold.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(serverPatience); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// ours is the number of goroutines that run code of this module's packages.
func ours() int {
	buf := make([]byte, 4<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	n := 0
	for _, s := range stacks {
		if strings.Contains(s, "duet/peer.") || strings.Contains(s, "duet/wsconn.") {
			n++
		}
	}
	return n
}

// serve returns a Server with opts on a socket. At the end of the test it is
// closed, and no goroutine of it or of its clients may be left.
func serve(t *testing.T, opts *peer.Options) (*peer.Server, string) {
	t.Helper()
	before := ours()
	s := peer.NewServer(opts)
	hs := httptest.NewServer(s)
	t.Cleanup(func() {
		_ = s.Close()
		hs.Close()
		eventually(t, "goroutines are back where they were", func() bool { return ours() <= before })
		if got := s.Conns(); len(got) != 0 {
			t.Errorf("Conns() = %v after the end", got)
		}
	})
	return s, "ws" + strings.TrimPrefix(hs.URL, "http")
}

// conns waits until the Server has n connections, and returns them: an end that
// dials may be through before the Server has noted it.
func conns(t *testing.T, s *peer.Server, n int) []*peer.Conn {
	t.Helper()
	eventually(t, fmt.Sprintf("%d connections", n), func() bool { return len(s.Conns()) == n })
	return s.Conns()
}

// dial returns a peer connected to url, closed at the end of the test.
func dial(t *testing.T, url string, opts *peer.Options) *peer.Conn {
	t.Helper()
	c, err := peer.Dial(t.Context(), url, opts)
	if err != nil {
		t.Fatalf("Dial() = %v", err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		<-c.Done()
	})
	return c
}

// socket returns a bare WebSocket to url, cut at the end of the test.
func socket(t *testing.T, url string, opts *websocket.DialOptions) *websocket.Conn {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// status is what the server answers to an upgrade that fails.
func status(t *testing.T, url string, opts *websocket.DialOptions) (int, http.Header, string) {
	t.Helper()
	ws, resp, err := websocket.Dial(t.Context(), url, opts)
	if err == nil {
		_ = ws.CloseNow()
		return resp.StatusCode, resp.Header, ""
	}
	if resp == nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(body)
}

// The main job: two peers over one real WebSocket call each other and notify
// each other, and every answer finds its caller.
func TestServerBothWays(t *testing.T) {
	const double, tick = peer.Method[[]int, int]("double"), peer.Notification[[]int]("tick")
	register := func(reg *peer.Registry, ticks *[]int) {
		double.Handle(reg, func(ctx context.Context, in []int) (int, error) {
			if in[0] == 0 {
				return 0, nil
			}
			c, _ := peer.CallerFrom(ctx) // back and forth, while the call is open
			half, err := double.Call(ctx, c, []int{in[0] - 1})
			return half + 2, err
		})
		tick.Handle(reg, func(_ context.Context, in []int) error {
			*ticks = append(*ticks, in[0])
			return nil
		})
	}
	var serverReg, clientReg peer.Registry
	var serverTicks, clientTicks []int
	register(&serverReg, &serverTicks)
	register(&clientReg, &clientTicks)
	s, url := serve(t, &peer.Options{Handler: &serverReg})
	client := dial(t, url, &peer.Options{Handler: &clientReg})
	server := conns(t, s, 1)[0]

	const n = 50
	done := make(chan error, 2*n)
	for _, c := range []*peer.Conn{client, server} {
		for i := range n {
			if err := tick.Notify(t.Context(), c, []int{i}); err != nil {
				t.Fatal(err)
			}
			go func() {
				got, err := double.Call(t.Context(), c, []int{i % 8})
				if err == nil && got != 2*(i%8) {
					err = fmt.Errorf("double(%d) = %d", i%8, got)
				}
				done <- err
			}()
		}
	}
	for range 2 * n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, ticks := range [][]int{serverTicks, clientTicks} {
		if len(ticks) != n {
			t.Fatalf("%d ticks, want %d", len(ticks), n)
		}
		for i, got := range ticks {
			if got != i {
				t.Fatalf("ticks = %v, want them in order", ticks)
			}
		}
	}
	_ = client.Close()
	<-server.Done()
	if client.Err() != nil || server.Err() != nil {
		t.Errorf("Err() = %v and %v after an orderly end", client.Err(), server.Err())
	}
}

type userKey struct{}

func TestServerAuthorize(t *testing.T) {
	var asked atomic.Int64
	secret := errors.New("secret reason")
	who := peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
		user, _ := ctx.Value(userKey{}).(string)
		if ctx.Value(http.ServerContextKey) != nil {
			user += "+request"
		}
		return user, ctx.Err()
	})
	_, url := serve(t, &peer.Options{Handler: who, Authorize: func(r *http.Request) (context.Context, error) {
		asked.Add(1)
		switch user := r.Header.Get("Authorization"); user {
		case "":
			return nil, secret
		case "root":
			return nil, fmt.Errorf("%w: %w", peer.ErrForbidden, secret)
		case "guest":
			return nil, nil
		default:
			return context.WithValue(r.Context(), userKey{}, user), nil
		}
	}})
	for _, tc := range []struct {
		user      string
		want      int
		challenge bool
	}{{"", 401, true}, {"root", 403, false}} {
		got, header, body := status(t, url, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {tc.user}}})
		if got != tc.want || (header.Get("WWW-Authenticate") != "") != tc.challenge || strings.Contains(body, "secret") {
			t.Errorf("user %q is answered with %d, challenge %q, body %q, want %d without the reason",
				tc.user, got, header.Get("WWW-Authenticate"), body, tc.want)
		}
	}
	for user, want := range map[string]string{"ann": "ann+request", "guest": "+request"} {
		c := dial(t, url, &peer.Options{WebSocket: wsconn.Options{Header: http.Header{"Authorization": {user}}}})
		var got string
		if err := c.Call(t.Context(), "who", nil, &got); err != nil || got != want {
			t.Errorf("who() = %q, %v, want %q", got, err, want)
		}
	}
	// Neither a page of another site nor a name that was pointed here comes as
	// far as Authorize.
	before := asked.Load()
	for name, opts := range map[string]*websocket.DialOptions{
		"origin": {HTTPHeader: http.Header{"Authorization": {"ann"}, "Origin": {"https://evil.example"}}},
		"host":   {HTTPHeader: http.Header{"Authorization": {"ann"}}, Host: "evil.example"},
	} {
		if got, _, _ := status(t, url, opts); got != 403 {
			t.Errorf("foreign %s is answered with %d, want 403", name, got)
		}
	}
	if got := asked.Load(); got != before {
		t.Errorf("Authorize was asked %d times about them, want 0", got-before)
	}
}

func TestServerBaseContext(t *testing.T) {
	cause := errors.New("base over")
	base, cancel := context.WithCancelCause(context.WithValue(context.Background(), userKey{}, "base"))
	defer cancel(nil)
	started, ended := make(chan string, 1), make(chan error, 1)
	_, url := serve(t, &peer.Options{BaseContext: base, Handler: peer.HandlerFunc(func(ctx context.Context, _ *peer.Request) (any, error) {
		started <- ctx.Value(userKey{}).(string)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, nil
	})})
	c := dial(t, url, nil)
	done := make(chan error, 1)
	go func() { done <- c.Call(t.Context(), "wait", nil, nil) }()
	if got := <-started; got != "base" {
		t.Errorf("the handler's context has %q, want base", got)
	}
	cancel(cause)
	if got := <-ended; !errors.Is(got, cause) {
		t.Errorf("the handler's cause = %v, want %v", got, cause)
	}
	<-done
}

func TestBaseContextEndsNoConnection(t *testing.T) {
	base, cancel := context.WithCancel(context.Background())
	_, url := serve(t, &peer.Options{BaseContext: base, Handler: gateOpen})
	c := dial(t, url, nil)
	cancel()
	if err := c.Call(t.Context(), "m", nil, nil); err != nil {
		t.Errorf("Call() = %v, want nil: the end of BaseContext reaches handlers alone", err)
	}
}

// countingTransport counts what is read.
type countingTransport struct {
	peer.Transport
	reads *atomic.Int64
}

func (c countingTransport) Read(ctx context.Context, buf []byte) ([]byte, error) {
	b, err := c.Transport.Read(ctx, buf)
	c.reads.Add(1)
	return b, err
}

func TestServerTransport(t *testing.T) {
	var reads atomic.Int64
	taken := make(chan peer.Transport, 1)
	s, url := serve(t, &peer.Options{Handler: gateOpen, Transport: func(r *http.Request, tr peer.Transport) (peer.Transport, error) {
		switch r.URL.Path {
		case "/wrap":
			return countingTransport{tr, &reads}, nil
		case "/take":
			taken <- tr
			return nil, nil
		default:
			return nil, wsconn.ErrTryAgainLater
		}
	}})
	c := dial(t, url+"/wrap", nil)
	if err := c.Call(t.Context(), "m", nil, nil); err != nil || reads.Load() == 0 {
		t.Errorf("Call() = %v with %d reads through the wrapper", err, reads.Load())
	}

	failed := dial(t, url+"/fail", nil)
	<-failed.Done()
	if err := failed.Err(); !errors.Is(err, wsconn.ErrTryAgainLater) {
		t.Errorf("Err() = %v, want what Options.Transport returned", err)
	}

	ws := socket(t, url+"/take", nil)
	tr := <-taken
	if err := tr.Write(t.Context(), []byte("by hand")); err != nil {
		t.Fatal(err)
	}
	if _, msg, err := ws.Read(t.Context()); err != nil || string(msg) != "by hand" {
		t.Errorf("Read() = %s, %v, want what the taker wrote", msg, err)
	}
	_ = ws.CloseNow()
	_, _ = tr.Read(context.Background(), nil)
	_ = tr.Close(nil)
	conns(t, s, 1) // the wrapped one alone
}

// Accept tells its caller what became of the request.
func TestAcceptErrors(t *testing.T) {
	denied := errors.New("denied")
	for _, tc := range []struct {
		name   string
		opts   *peer.Options
		status int
		want   func(error) bool
	}{
		{"taken", &peer.Options{Transport: func(_ *http.Request, tr peer.Transport) (peer.Transport, error) {
			_ = tr.Close(nil)
			go func() { _, _ = tr.Read(context.Background(), nil) }()
			return nil, nil
		}}, 101, func(err error) bool { return errors.Is(err, peer.ErrTaken) }},
		{"options", &peer.Options{Limits: peer.Limits{InFlight: -1}}, 500, func(err error) bool {
			var bad *peer.OptionError
			return errors.As(err, &bad) && bad.Field == "Limits.InFlight"
		}},
		{"authorize", &peer.Options{Authorize: func(*http.Request) (context.Context, error) { return nil, denied }}, 401,
			func(err error) bool { return errors.Is(err, denied) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := make(chan error, 1)
			hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := peer.Accept(w, r, tc.opts)
				if c != nil {
					t.Errorf("Accept() gave a connection and %v", err)
				}
				got <- err
			}))
			defer hs.Close()
			code, _, _ := status(t, "ws"+strings.TrimPrefix(hs.URL, "http"), nil)
			if err := <-got; code != tc.status || !tc.want(err) {
				t.Errorf("Accept() = %v with status %d, want %d", err, code, tc.status)
			}
		})
	}
	// What is no handshake is answered too.
	s, _ := serve(t, nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusUpgradeRequired {
		t.Errorf("a plain GET is answered with %d, want 426", w.Code)
	}
}

func TestServerConnections(t *testing.T) {
	s, url := serve(t, &peer.Options{Limits: peer.Limits{Connections: 2}})
	first := dial(t, url, nil)
	dial(t, url, nil)
	code, header, _ := status(t, url, nil)
	if code != 503 || header.Get("Retry-After") == "" {
		t.Errorf("a third is answered with %d, Retry-After %q, want 503 and when to try again", code, header.Get("Retry-After"))
	}
	// A plain request takes no place for good.
	for range 3 {
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	conns(t, s, 2)
	_ = first.Close()
	conns(t, s, 1)
	dial(t, url, nil)
}

// A server that shuts down gives the last answer, then says so (RFC 6455 section
// 7.4.1: 1001).
func TestServerShutdown(t *testing.T) {
	g := make(gate)
	var reg peer.Registry
	reg.Handle("m", g)
	reg.Handle("late", gateOpen)
	s, url := serve(t, &peer.Options{Handler: &reg})
	c := dial(t, url, nil)
	bare := socket(t, url, nil)
	bareCode := make(chan websocket.StatusCode, 1)
	go func() {
		_, _, err := bare.Read(context.Background())
		bareCode <- websocket.CloseStatus(err)
	}()
	answered := make(chan error, 1)
	go func() { answered <- c.Call(t.Context(), "m", nil, nil) }()
	eventually(t, "the call is in flight", func() bool {
		n := 0
		for _, conn := range s.Conns() {
			n += conn.Stats().InFlight
		}
		return n == 1 && len(s.Conns()) == 2
	})
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), serverPatience)
		defer cancel()
		done <- s.Shutdown(ctx)
	}()
	if got := <-bareCode; got != websocket.StatusGoingAway {
		t.Errorf("the idle end was told %d, want 1001", got)
	}
	if code, _, _ := status(t, url, nil); code != 503 {
		t.Errorf("an upgrade is answered with %d, want 503", code)
	}
	// The connections are shut down side by side: this one may be told later.
	eventually(t, "new calls are refused", func() bool {
		return errors.Is(c.Call(t.Context(), "late", nil, nil), &peer.Error{Code: -32011})
	})
	select {
	case err := <-done:
		t.Fatalf("Shutdown() = %v while a call runs", err)
	case err := <-answered:
		t.Fatalf("Call() = %v before its handler returned", err)
	default:
	}
	close(g)
	if err := <-answered; err != nil {
		t.Errorf("Call() = %v, want nil", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown() = %v, want nil", err)
	}
	<-c.Done()
	if err := c.Err(); err != nil {
		t.Errorf("Err() = %v after an orderly end", err)
	}
	var closed *peer.CloseError
	if err := c.Call(t.Context(), "m", nil, nil); !errors.As(err, &closed) || closed.Code != 1001 {
		t.Errorf("Call() = %v, want close code 1001", err)
	}
}

// Shutdown does not wait longer than its context.
func TestServerShutdownDeadline(t *testing.T) {
	s, url := serve(t, &peer.Options{Handler: make(gate)})
	c := dial(t, url, nil)
	answered := make(chan error, 1)
	go func() { answered <- c.Call(t.Context(), "m", nil, nil) }()
	eventually(t, "the call is in flight", func() bool {
		return len(s.Conns()) == 1 && s.Conns()[0].Stats().InFlight == 1
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown() = %v, want the deadline", err)
	}
	if err := <-answered; err == nil {
		t.Error("Call() = nil, want the end of the connection")
	}
}

func TestServerClose(t *testing.T) {
	s, url := serve(t, &peer.Options{Handler: make(gate)})
	c := dial(t, url, nil)
	answered := make(chan error, 1)
	go func() { answered <- c.Call(t.Context(), "m", nil, nil) }()
	eventually(t, "the call is in flight", func() bool {
		return len(s.Conns()) == 1 && s.Conns()[0].Stats().InFlight == 1
	})
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
	var call *peer.CallError
	if err := <-answered; !errors.As(err, &call) || call.Sent != pending.Sent || !errors.Is(err, io.EOF) {
		t.Errorf("Call() = %v, want an orderly end after it was sent", err)
	}
	if code, _, _ := status(t, url, nil); code != 503 {
		t.Errorf("an upgrade is answered with %d, want 503", code)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close() = %v, want nil", err)
	}
}

// A message over the bound of the end that receives it: both ends know why.
func TestServerOversize(t *testing.T) {
	s, url := serve(t, &peer.Options{Handler: gateOpen, Limits: peer.Limits{MessageBytes: 1024}})
	c := dial(t, url, nil)
	if err := c.Call(t.Context(), "m", nil, nil); err != nil {
		t.Fatal(err)
	}
	server := conns(t, s, 1)[0]
	err := c.Call(t.Context(), "m", []string{strings.Repeat("x", 2048)}, nil)
	if !errors.Is(err, wsconn.ErrMessageTooBig) {
		t.Errorf("Call() = %v, want ErrMessageTooBig", err)
	}
	<-c.Done()
	<-server.Done()
	for name, err := range map[string]error{"client": c.Err(), "server": server.Err()} {
		var closed *peer.CloseError
		if !errors.Is(err, wsconn.ErrMessageTooBig) || !errors.As(err, &closed) || closed.Code != 1009 {
			t.Errorf("%s: Err() = %v, want ErrMessageTooBig with 1009", name, err)
		}
	}
}

func TestServerBinary(t *testing.T) {
	const call, answer = `{"jsonrpc":"2.0","id":1,"method":"m"}`, `{"jsonrpc":"2.0","id":1,"result":null}`
	_, url := serve(t, &peer.Options{Handler: gateOpen})
	ws := socket(t, url, nil)
	if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(call)); err != nil {
		t.Fatal(err)
	}
	if kind, msg, err := ws.Read(t.Context()); err != nil || kind != websocket.MessageText || string(msg) != answer {
		t.Errorf("Read() = %v %s, %v, want the answer as text", kind, msg, err)
	}

	_, url = serve(t, &peer.Options{Handler: gateOpen, WebSocket: wsconn.Options{RefuseBinary: true}})
	ws = socket(t, url, nil)
	if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(call)); err != nil {
		t.Fatal(err)
	}
	if _, msg, err := ws.Read(t.Context()); websocket.CloseStatus(err) != 1003 {
		t.Errorf("Read() = %s, %v, want close code 1003", msg, err)
	}
}

// Two reported faults: a handler was not cancelled when its peer had left, and
// calls to it hung.
func TestServerVanishedClient(t *testing.T) {
	ended, called := make(chan error, 1), make(chan error, 1)
	s, url := serve(t, &peer.Options{Handler: peer.HandlerFunc(func(ctx context.Context, req *peer.Request) (any, error) {
		go func() { called <- req.Conn.Call(context.Background(), "back", nil, nil) }()
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, nil
	})})
	ws := socket(t, url, nil)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"m"}`)); err != nil {
		t.Fatal(err)
	}
	if _, msg, err := ws.Read(t.Context()); err != nil || !strings.Contains(string(msg), `"back"`) {
		t.Fatalf("Read() = %s, %v, want the call back", msg, err)
	}
	server := conns(t, s, 1)[0]
	_ = ws.CloseNow()
	if err := <-ended; !errors.Is(err, wsconn.ErrAbnormal) {
		t.Errorf("the handler's cause = %v, want ErrAbnormal", err)
	}
	var call *peer.CallError
	if err := <-called; !errors.As(err, &call) || call.Sent == pending.NotSent || !errors.Is(err, wsconn.ErrAbnormal) {
		t.Errorf("Call() = %v, want ErrAbnormal after it was sent", err)
	}
	<-server.Done()
	if err := server.Err(); !errors.Is(err, wsconn.ErrAbnormal) {
		t.Errorf("Err() = %v, want ErrAbnormal", err)
	}
}

// Every option that cannot be meant is named, whoever is given it.
func TestOptionErrors(t *testing.T) {
	for _, tc := range []struct {
		field string
		opts  peer.Options
	}{
		{"Limits.MessageBytes", peer.Options{Limits: peer.Limits{MessageBytes: 1023}}},
		{"Limits.MessageBytes", peer.Options{Limits: peer.Limits{MessageBytes: -1}}},
		{"Limits.InFlight", peer.Options{Limits: peer.Limits{InFlight: -1}}},
		{"Limits.InFlightBytes", peer.Options{Limits: peer.Limits{InFlightBytes: -1}}},
		{"Limits.BatchItems", peer.Options{Limits: peer.Limits{BatchItems: -1}}},
		{"Limits.Pending", peer.Options{Limits: peer.Limits{Pending: -1}}},
		{"Limits.Abandoned", peer.Options{Limits: peer.Limits{Abandoned: -1}}},
		{"Limits.Notifications", peer.Options{Limits: peer.Limits{Notifications: -1}}},
		{"Limits.NotificationBytes", peer.Options{Limits: peer.Limits{NotificationBytes: -1}}},
		{"Limits.QueueBytes", peer.Options{Limits: peer.Limits{QueueBytes: 4095}}},
		{"Limits.OrderWait", peer.Options{Limits: peer.Limits{OrderWait: -1}}},
		{"Limits.WriteTimeout", peer.Options{Limits: peer.Limits{WriteTimeout: -1}}},
		{"Limits.Connections", peer.Options{Limits: peer.Limits{Connections: -1}}},
		{"Outgoing", peer.Options{Outgoing: []func(peer.Caller) peer.Caller{nil}}},
		{"WebSocket.ReadLimit", peer.Options{WebSocket: wsconn.Options{ReadLimit: 1}}},
		{"WebSocket.WriteTimeout", peer.Options{WebSocket: wsconn.Options{WriteTimeout: 1}}},
		{"WebSocket.PongTimeout", peer.Options{WebSocket: wsconn.Options{PongTimeout: -1}}},
		{"WebSocket.OriginPatterns[1]", peer.Options{WebSocket: wsconn.Options{OriginPatterns: []string{"a", "["}}}},
		{"WebSocket.Hosts[0]", peer.Options{WebSocket: wsconn.Options{Hosts: []string{"a/b"}}}},
		{"WebSocket.Subprotocols[0]", peer.Options{WebSocket: wsconn.Options{Subprotocols: []string{"a b"}}}},
	} {
		t.Run(tc.field, func(t *testing.T) {
			named := func(what string, err error) {
				t.Helper()
				var bad *peer.OptionError
				if !errors.As(err, &bad) || bad.Field != tc.field || !strings.Contains(err.Error(), tc.field) {
					t.Errorf("%s = %v, want an *OptionError of %s", what, err, tc.field)
				}
			}
			named("Validate()", tc.opts.Validate())
			_, err := peer.Dial(t.Context(), "ws://127.0.0.1:1/", &tc.opts)
			named("Dial()", err)
			w := httptest.NewRecorder()
			_, err = peer.Accept(w, httptest.NewRequest("GET", "/", nil), &tc.opts)
			named("Accept()", err)
			if w.Code != 500 || strings.Contains(w.Body.String(), tc.field) {
				t.Errorf("Accept() answered %d %q, want 500 without details", w.Code, w.Body)
			}
			for name, f := range map[string]func(){
				"NewServer()": func() { peer.NewServer(&tc.opts) },
				"New()":       func() { a, _ := peer.Pipe(); peer.New(a, &tc.opts) },
			} {
				func() {
					defer func() { err, _ := recover().(error); named(name, err) }()
					f()
				}()
			}
		})
	}
	if err := (*peer.Options)(nil).Validate(); err != nil {
		t.Errorf("Validate() of nil = %v, want nil", err)
	}
	if got := panicText(func() { peer.New(nil, nil) }); !strings.Contains(got, "Transport") {
		t.Errorf("New(nil) panics with %q, want what is missing", got)
	}
}

func TestDialErrors(t *testing.T) {
	hs := httptest.NewServer(http.NotFoundHandler())
	defer hs.Close()
	for _, tc := range []struct {
		name, url string
		status    int
	}{
		{"not found", "ws" + strings.TrimPrefix(hs.URL, "http") + "/?token=secret", 404},
		{"no scheme", "127.0.0.1", 0},
		{"another scheme", "ftp://127.0.0.1/?token=secret", 0},
		{"no URL", "ws://%zz", 0},
		{"nobody there", "ws://127.0.0.1:1/?token=secret", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := peer.Dial(t.Context(), tc.url, nil)
			var bad *wsconn.DialError
			if c != nil || !errors.As(err, &bad) || bad.Status != tc.status || strings.Contains(err.Error(), "secret") {
				t.Errorf("Dial() = %v, %v, want a *wsconn.DialError of %d without the query", c, err, tc.status)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := peer.Dial(ctx, hs.URL, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial() = %v, want the end of its context", err)
	}
}

func TestServerSubprotocol(t *testing.T) {
	agreed := make(chan string, 1)
	_, url := serve(t, &peer.Options{
		WebSocket: wsconn.Options{Subprotocols: []string{"v2", "v1"}},
		Transport: func(_ *http.Request, tr peer.Transport) (peer.Transport, error) {
			agreed <- tr.(interface{ Subprotocol() string }).Subprotocol()
			return tr, nil
		},
	})
	for _, tc := range []struct {
		offer []string
		want  string
	}{{[]string{"v1", "v2"}, "v2"}, {[]string{"v1"}, "v1"}, {[]string{"v3"}, ""}, {nil, ""}} {
		ws := socket(t, url, &websocket.DialOptions{Subprotocols: tc.offer})
		if got := <-agreed; got != tc.want || ws.Subprotocol() != tc.want {
			t.Errorf("offered %q, the ends agreed on %q and %q, want %q", tc.offer, got, ws.Subprotocol(), tc.want)
		}
	}
}

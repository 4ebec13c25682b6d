package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
	"github.com/duetrpc/duet/stream"
)

// The contract between the two ends of duet's pair, as a program that uses the
// library would write it. The raw call has none: what forwards JSON text takes
// the untyped door, Registry.Handle and Conn.Call.
const (
	echo = peer.Method[Doc, Doc]("bench.echo")
	note = peer.Notification[Doc]("bench.note")
	rows = stream.Method[struct{}, Doc, struct{}]("bench.rows")

	rawEcho = "bench.raw"
)

// Duet is the System of this library: peer.NewServer behind net/http, and
// peer.Dial. Limits are the defaults, save that 8,192 calls may be in flight
// (the most that a load has is 4,096).
func Duet() System {
	return System{Name: "duet", Kinds: []Kind{Typed, Raw, Notify, Stream}, Open: openDuet}
}

// DuetHandler is a server of duet's for Idle, with room for so many connections.
func DuetHandler(connections int) http.Handler {
	var reg peer.Registry
	register(&reg, new(atomic.Uint64), nil, 0)
	return peer.NewServer(&peer.Options{Handler: &reg, Limits: peer.Limits{Connections: connections}})
}

// duet is a Pair: the client's end, the server's and what carries them.
type duet struct {
	http    *http.Server
	server  *peer.Server
	client  *peer.Conn
	redials *peer.Client // nil without sessions
	handled *atomic.Uint64
	sends   chan func(Doc) error // of the stream's handler, which is asked for once
	send    func() func(Doc) error
}

// openDuet starts a server for one connection and makes it. The client's sockets
// come from the Wire by way of its http.Transport.
func openDuet(ctx context.Context, s Setup) (Pair, error) {
	d := &duet{handled: new(atomic.Uint64), sends: make(chan func(Doc) error, 1)}
	d.send = sync.OnceValue(d.stream)
	var reg peer.Registry
	register(&reg, d.handled, d.sends, s.Methods)
	served := &peer.Options{Handler: &reg, Limits: peer.Limits{InFlight: 8192}}
	if s.Resume {
		served = resume.NewSessions(&resume.Options{Anonymous: true}).Server(served)
	}
	d.server = peer.NewServer(served)

	listener, err := s.Wire.Listen()
	if err != nil {
		return nil, err
	}
	d.http = &http.Server{Handler: d.server, ReadHeaderTimeout: 10 * time.Second}
	transport := &http.Transport{DialContext: s.Wire.Dial}
	url := "ws://" + listener.Addr().String() + "/"
	serve := d.http.Serve
	if s.TLS {
		server, client, err := s.Wire.TLS()
		if err != nil {
			_ = listener.Close()
			return nil, err
		}
		d.http.TLSConfig, transport.TLSClientConfig = server, client
		url = "wss" + url[len("ws"):]
		serve = func(l net.Listener) error { return d.http.ServeTLS(l, "", "") }
	}
	go func() { _ = serve(listener) }() // returns when Close closes the listener

	var opts peer.Options
	opts.WebSocket.HTTPClient = &http.Client{Transport: transport}
	if s.Resume {
		if d.redials, err = peer.NewClient(url, resume.Client(&peer.ClientOptions{Options: opts}, nil)); err == nil {
			d.client, err = d.redials.Conn(ctx)
		}
	} else {
		d.client, err = peer.Dial(ctx, url, &opts)
	}
	if err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("load: duet: %w", err)
	}
	return d, nil
}

// stream begins the stream, whose items the client takes, and returns what sends them.
func (d *duet) stream() func(Doc) error {
	s := rows.Call(d.client.Context(), d.client, struct{}{})
	go func() {
		for _, err := range s.All() {
			if err != nil {
				return // the end of the pair; before that, what is missing is noticed
			}
			d.handled.Add(1)
		}
	}()
	return <-d.sends
}

// register puts the echo into reg, and so many methods beside it.
func register(reg *peer.Registry, handled *atomic.Uint64, sends chan<- func(Doc) error, beside int) {
	answer := func(ctx context.Context, in Doc) (Doc, error) {
		if in.Seq == Stay {
			<-ctx.Done()
			return Doc{}, context.Cause(ctx)
		}
		return in, nil
	}
	echo.Handle(reg, answer)
	// Params are valid until the handler returns, and the result is encoded then.
	reg.Handle(rawEcho, peer.HandlerFunc(func(_ context.Context, r *peer.Request) (any, error) {
		return r.Params, nil
	}))
	note.Handle(reg, func(context.Context, Doc) error {
		handled.Add(1)
		return nil
	})
	rows.Handle(reg, func(ctx context.Context, _ struct{}, send func(Doc) error) (struct{}, error) {
		sends <- send
		<-ctx.Done()
		return struct{}{}, context.Cause(ctx)
	})
	for i := range beside {
		peer.Method[Doc, Doc](fmt.Sprintf("bench.method%05d", i)).Handle(reg, answer)
	}
}

// Call takes and returns values, as typed contracts do; the copies are part of
// what is measured.
func (d *duet) Call(ctx context.Context, in, out *Doc) (err error) {
	*out, err = echo.Call(ctx, d.client, *in)
	return err
}

func (d *duet) CallRaw(ctx context.Context, in json.RawMessage, out *json.RawMessage) error {
	return d.client.Call(ctx, rawEcho, in, out)
}

func (d *duet) Notify(ctx context.Context, in *Doc) error {
	return note.Notify(ctx, d.client, *in)
}

// Send sends an item of the one stream there is.
func (d *duet) Send(_ context.Context, in *Doc) error { return d.send()(*in) }

func (d *duet) Handled() uint64 { return d.handled.Load() }

// Close returns when nothing of the pair runs any more, so that it does not run
// into the next one's figures.
func (d *duet) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if d.redials != nil {
		_ = d.redials.Close()
	}
	if d.client != nil {
		_ = d.client.Close()
	}
	err := d.server.Shutdown(ctx)
	if d.client != nil {
		select {
		case <-d.client.Done():
		case <-ctx.Done():
		}
	}
	_ = d.http.Close()
	if err != nil {
		return fmt.Errorf("load: duet: close: %w", err)
	}
	return nil
}

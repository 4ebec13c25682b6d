// Command resume is a call that outlives its socket: the client's network goes away while
// the handler runs, and comes back.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

type task struct {
	Seconds int `json:"seconds"`
}

const work = peer.Method[task, string]("work")

// authorize names who is at the other end: a session belongs to nobody else.
func authorize(r *http.Request) (context.Context, error) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		return nil, errors.New("no such token")
	}
	return peer.WithPrincipal(r.Context(), "user 1"), nil
}

func main() {
	var reg peer.Registry
	work.Handle(&reg, func(ctx context.Context, in task) (string, error) {
		time.Sleep(time.Duration(in.Seconds) * time.Second) // ctx does not end while the session lives
		return fmt.Sprintf("done, for %s", peer.PrincipalFrom(ctx)), nil
	})
	sessions := resume.NewSessions(nil)
	server := peer.NewServer(sessions.Server(&peer.Options{Handler: &reg, Authorize: authorize}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(listener, server)) }()

	opts := &peer.ClientOptions{
		OnConnect: func(context.Context, *peer.Conn) error { // on each new connection, before all calls
			fmt.Println("a new session: this is the place to initialize, and to subscribe")
			return nil
		},
		OnState: func(s peer.ClientState) { fmt.Println(s) },
	}
	opts.WebSocket.Header = http.Header{"Authorization": {"Bearer secret"}}
	cable := &cable{} // stands for the network
	opts.WebSocket.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: cable.dial}}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := peer.NewClient("ws://"+listener.Addr().String()+"/", resume.Client(opts, nil))
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(500*time.Millisecond, cable.cut)
	fmt.Println(work.Call(ctx, client, task{1}))
	fmt.Println(client.Shutdown(ctx), sessions.Stats().Resumed, "time resumed")
}

type cable struct{ conn atomic.Value }

func (c *cable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		c.conn.Store(conn)
	}
	return conn, err
}

func (c *cable) cut() { _ = c.conn.Load().(net.Conn).Close() }

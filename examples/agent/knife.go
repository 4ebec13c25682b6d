package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/resume"
)

// knife cuts the client's own connection now and then, below everything: the session
// goes on over the next one.
type knife struct {
	every time.Duration // 0 never
	tap   *tap

	mu     sync.Mutex
	socket net.Conn // the newest
	at     time.Time
}

// connect makes a connection over a session, with the tap between: that sees each message
// once, whatever became of the sockets.
func (k *knife) connect(ctx context.Context, url string, wire *tap, opts peer.Options) (conn *peer.Conn, stop func(), err error) {
	opts.WebSocket.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: k.dial}}
	with := resume.Client(&peer.ClientOptions{
		Options: opts, OnState: k.state, FirstWait: 20 * time.Millisecond, MaxWait: 200 * time.Millisecond,
		GiveUp: func(error) bool { return !k.connected() },
	}, nil)
	session := with.Session
	with.Session = func(ctx context.Context, d *peer.Redialer) (peer.Transport, error) {
		t, err := session(ctx, d)
		if err != nil {
			return nil, err
		}
		if wire.Transport != nil {
			_ = t.Close(nil)
			return nil, errors.New("the session was lost")
		}
		wire.Transport = t
		return wire, nil
	}
	client, err := peer.NewClient(url, with)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = client.Close()
		<-client.Done()
	}
	if conn, err = client.Conn(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return conn, stop, nil
}

func (k *knife) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.socket = c
	}
	return c, err
}

// connected reports whether there ever was a connection.
func (k *knife) connected() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.socket != nil
}

// start cuts until ctx ends, and then tells how often it did.
func (k *knife) start(ctx context.Context) <-chan int {
	cuts := make(chan int, 1)
	if k.every == 0 {
		cuts <- 0
		return cuts
	}
	go func() {
		tick := time.NewTicker(k.every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				k.cut()
			case <-ctx.Done():
				cuts <- n
				return
			}
		}
	}()
	return cuts
}

// cut resets the connection: no close frame, and what was on its way is gone.
func (k *knife) cut() {
	k.mu.Lock()
	socket := k.socket
	k.at = time.Now()
	k.mu.Unlock()
	k.tap.cut()
	if c, ok := socket.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = socket.Close()
}

// state shows that the session goes on.
func (k *knife) state(s peer.ClientState) {
	if s.Phase != peer.Resumed {
		return
	}
	k.mu.Lock()
	took := time.Since(k.at)
	k.mu.Unlock()
	k.tap.goesOn(took)
}

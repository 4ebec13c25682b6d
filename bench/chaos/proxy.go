package main

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// proxy stands between one client and the server.
type proxy struct {
	listener net.Listener
	server   string
	script   func(connection int) script
	onCut    func(kind)

	running sync.WaitGroup

	mu     sync.Mutex
	relays map[*relay]struct{}
	quiet  bool // nothing goes wrong any more
}

// newProxy listens on the loopback interface.
func newProxy(server string, script func(connection int) script, onCut func(kind)) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("chaos: proxy: %w", err)
	}
	p := &proxy{listener: l, server: server, script: script, onCut: onCut, relays: make(map[*relay]struct{})}
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for connection := 0; ; connection++ {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", p.server, time.Second)
		if err != nil {
			_ = client.Close()
			continue
		}
		r := &relay{client: client.(*net.TCPConn), server: server.(*net.TCPConn), onCut: p.onCut}
		p.mu.Lock()
		if !p.quiet {
			r.script = p.script(connection)
		}
		p.relays[r] = struct{}{}
		p.mu.Unlock()
		p.running.Go(func() {
			r.run()
			p.mu.Lock()
			delete(p.relays, r)
			p.mu.Unlock()
		})
	}
}

// calm ends the faults: what has any is closed, and what comes is passed on as it is.
func (p *proxy) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = true
	p.drop()
}

// close ends everything, and waits for it.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.drop()
	p.mu.Unlock()
	p.running.Wait()
}

// drop closes all connections. p.mu is held.
func (p *proxy) drop() {
	for r := range p.relays {
		r.over.Store(true)
		r.close()
	}
}

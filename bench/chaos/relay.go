package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// relay is one connection through the proxy: two sockets, and a script.
type relay struct {
	script script
	client *net.TCPConn
	server *net.TCPConn
	onCut  func(kind)

	over atomic.Bool // an end has ended it, or the proxy has
	dark atomic.Bool // nothing passes
}

// run passes on what comes, until both sockets have ended.
func (r *relay) run() {
	var both sync.WaitGroup
	both.Go(func() { r.pass(r.client, r.server, true) })
	both.Go(func() { r.pass(r.server, r.client, false) })
	both.Wait()
	r.close()
}

// pass is one direction. Whatever happens to it, from is read to its end, so that nothing
// that writes to a channel here is left behind.
func (r *relay) pass(from, to *net.TCPConn, up bool) {
	cuts := r.script.Cut.Kind != "" && r.script.Cut.Up == up
	first := int64(-1) // all
	if cuts {
		first = r.script.Cut.After
	}
	in := r.read(from, first)
	for _, f := range r.script.Shapes {
		if f.Up == up {
			in = through(toxic(f), in)
		}
	}
	passed := r.deliver(in, to, first)
	if cuts && passed == first {
		if !r.cut(in, to) {
			to = nil // it has had its end, or is to have none
		}
	}
	for range in {
	}
	if to != nil && !r.dark.Load() {
		_ = to.CloseWrite()
	}
}

// read reads in chunks, none of which reaches over the byte of the cut.
func (r *relay) read(from *net.TCPConn, first int64) <-chan *chunk {
	out := make(chan *chunk)
	go func() {
		defer close(out)
		buf := make([]byte, 8<<10)
		for left := first; ; {
			most := len(buf)
			if left > 0 && left < int64(most) {
				most = int(left)
			}
			n, err := from.Read(buf[:most])
			if n > 0 {
				left -= int64(n)
				out <- &chunk{Data: append([]byte(nil), buf[:n]...), Timestamp: time.Now()}
			}
			if err != nil {
				r.over.Store(true)
				return
			}
		}
	}()
	return out
}

// deliver writes what comes, all of it or so many bytes, and returns how many.
func (r *relay) deliver(in <-chan *chunk, to *net.TCPConn, most int64) (n int64) {
	for n != most {
		c, ok := <-in
		if !ok {
			return n
		}
		n += int64(len(c.Data))
		if !r.dark.Load() {
			_, _ = to.Write(c.Data) // its reader sees why not
		}
	}
	return n
}

// cut does what the script says, and reports whether the end of this direction is still to
// be passed on.
func (r *relay) cut(in <-chan *chunk, to *net.TCPConn) (passes bool) {
	f := r.script.Cut
	t := toxic(f)
	if t != nil {
		r.deliver(through(t, in), to, -1)
	}
	if r.over.Load() {
		r.deliver(in, to, -1)
		return true
	}
	r.onCut(f.Kind)
	switch f.Kind {
	case halfClose:
		_ = to.CloseWrite()
	case blackhole:
		r.dark.Store(true)
	case oneWay:
	case reset, resetPeer:
		r.over.Store(true)
		_ = r.client.SetLinger(0)
		_ = r.server.SetLinger(0)
		r.close()
	default:
		r.over.Store(true)
		r.close()
	}
	return false
}

func (r *relay) close() {
	_ = r.client.Close()
	_ = r.server.Close()
}

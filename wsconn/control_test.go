package wsconn_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

// A tap passes one direction of a connection on, frame by frame, and counts what it sees.
type tap struct {
	pings, pongs atomic.Int64
	fault        error // known when done
}

func (p *tap) pass(to io.Writer, from io.Reader) {
	for {
		f, err := readFrame(from)
		if err != nil {
			return
		}
		switch n := len(f.payload); {
		case f.first == text && bytes.Count(f.payload, []byte{'m'}) == n:
		case f.first == pings && n == 8:
			p.pings.Add(1)
		case f.first == pongs && n == 8:
			p.pongs.Add(1)
		case f.first == closes:
		default:
			p.fault = fmt.Errorf("frame %x of %d bytes, beginning %.20q", f.first, n, f.payload)
			return
		}
		if _, err := to.Write(f.bytes(true)); err != nil {
			return
		}
	}
}

// Control frames stand whole between the data frames of two ends that both write a lot: what passes between them is
// cut into frames by somebody who knows neither. Both ends accept here, and the frames are masked on the way.
func TestControlFramesStayWhole(t *testing.T) {
	opts := &wsconn.Options{PingInterval: time.Millisecond, PongTimeout: time.Minute, WriteTimeout: -1}
	a, rawA := rawEnd(t, false, true, opts)
	b, rawB := rawEnd(t, false, true, opts)
	for _, raw := range []net.Conn{rawA, rawB} {
		raw.(*net.TCPConn).SetReadBuffer(64 << 10) // so that TryWrite leaves something now and then
	}
	var there, back tap
	var taps, writers sync.WaitGroup
	taps.Go(func() { there.pass(rawB, rawA); rawA.Close(); rawB.Close() })
	taps.Go(func() { back.pass(rawA, rawB); rawA.Close(); rawB.Close() })
	endA, endB := readAll(a), readAll(b)
	const wanted = 2
	enough := func() bool {
		return min(there.pings.Load(), there.pongs.Load(), back.pings.Load(), back.pongs.Load()) >= wanted
	}
	for _, c := range []*wsconn.Conn{a, b} {
		for i := range 2 {
			writers.Go(func() {
				msg := bytes.Repeat([]byte{'m'}, 1+i*3000)
				for !enough() {
					if took, flushed := c.TryWrite(msg); (!took || !flushed) && c.Write(context.Background(), msg, msg) != nil {
						return
					}
					runtime.Gosched() // the turn is for whoever comes first, which is mostly who has just had it
				}
			})
		}
	}
	writers.Wait()
	if !enough() {
		t.Error("the connection ended before enough pings and pongs had passed")
	}
	a.Close(nil)
	<-endA
	<-endB
	<-a.Done()
	<-b.Done()
	taps.Wait()
	for _, p := range []*tap{&there, &back} {
		if p.fault != nil {
			t.Errorf("what was written holds %v", p.fault)
		}
	}
}

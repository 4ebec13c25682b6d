package systems

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"

	"github.com/duetrpc/duet/bench/load"
)

// TCP is loopback TCP alone, frames with their length in four bytes, coalesced: what
// the machine can do.
func TCP() load.System {
	return load.System{
		Name:  TCPName,
		Kinds: []load.Kind{load.Raw, load.Notify},
		Open:  openTCP,
	}
}

func openTCP(ctx context.Context, s load.Setup) (load.Pair, error) {
	l, err := s.Wire.Listen()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	client, err := s.Wire.Dial(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	server, err := l.Accept()
	if err != nil {
		client.Close()
		return nil, err
	}
	calls, replies := newQueue(), newQueue()
	p := &rawPair{send: calls.put, close: func() error {
		calls.close()
		replies.close()
		server.Close()
		return client.Close()
	}}
	go writeTCP(client, calls, p.more)
	go writeTCP(server, replies, p.more)
	go p.echoTCP(server, replies)
	go p.readTCP(client)
	return p, nil
}

func writeTCP(c net.Conn, q *queue, more func(int) bool) {
	var frames []byte
	for ok := true; ok; {
		if frames, ok = q.take(frames, more); !ok {
			return
		}
		if _, err := c.Write(frames); err != nil {
			q.close()
		}
	}
}

func (p *rawPair) echoTCP(c net.Conn, replies *queue) {
	r := bufio.NewReaderSize(c, 64<<10)
	var head [4 + idBytes]byte
	var text []byte
	for {
		n, id, err := readHead(r, &head)
		if err != nil {
			return
		}
		text = slices.Grow(text[:0], n)[:n]
		if _, err := io.ReadFull(r, text); err != nil {
			return
		}
		if id == noteID {
			p.handled.Add(1)
		} else if replies.put(id, text, "") != nil {
			return
		}
	}
}

func (p *rawPair) readTCP(c net.Conn) {
	r := bufio.NewReaderSize(c, 64<<10)
	var head [4 + idBytes]byte
	for {
		n, id, err := readHead(r, &head)
		var s *slot
		if err == nil {
			s, err = p.waiting(id)
		}
		if err == nil {
			s.reply = slices.Grow(s.reply[:0], n)[:n]
			_, err = io.ReadFull(r, s.reply)
		}
		if err != nil {
			p.fail(err)
			return
		}
		p.settle(s)
	}
}

// readHead reads the length of a frame's text and its id.
func readHead(r io.Reader, head *[4 + idBytes]byte) (n int, id uint64, err error) {
	_, err = io.ReadFull(r, head[:])
	return int(binary.BigEndian.Uint32(head[:])) - idBytes, binary.BigEndian.Uint64(head[4:]), err
}

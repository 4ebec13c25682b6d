package systems

import (
	"context"
	"encoding/binary"
	"io"
	"sync"

	"github.com/coder/websocket"

	"github.com/duetrpc/duet/bench/load"
)

// Coalesced is coder/websocket with as many frames to a system call as there are:
// each end has a queue and a goroutine that takes all that is queued, writes the
// frames into memory, and hands that to the socket once. The memory sits where
// coder/websocket believes its connection to be, above TLS.
func Coalesced() load.System {
	return load.System{
		Name:  CoalescedName,
		Kinds: []load.Kind{load.Raw, load.Notify},
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			var server, client *held
			ends, err := connect(ctx, s.Wire,
				func(c io.ReadWriteCloser) io.ReadWriteCloser { server = &held{ReadWriteCloser: c}; return server },
				func(c io.ReadWriteCloser) io.ReadWriteCloser { client = &held{ReadWriteCloser: c}; return client },
			)
			if err != nil {
				return nil, err
			}
			calls, replies := newQueue(), newQueue()
			p := &rawPair{send: calls.put, close: func() error {
				calls.close()
				replies.close()
				return ends.Close()
			}}
			go writeFrames(ends.client, client, calls, p.more)
			go writeFrames(ends.server, server, replies, p.more)
			go p.readReplies(texts(ends.client))
			go p.echo(texts(ends.server), func(frame []byte) error {
				return replies.put(binary.BigEndian.Uint64(frame), frame[idBytes:], "")
			})
			return p, nil
		},
	}
}

// A writer gathers at most so many frames, or bytes, before it lets the other end
// begin: all that is queued at 256 in flight, written at once, would leave one of
// two processors waiting (290k calls a second instead of 400k).
const (
	pushFrames = 24
	pushBytes  = 32 << 10
)

func writeFrames(c *websocket.Conn, h *held, q *queue, more func(int) bool) {
	var frames []byte
	for ok := true; ok; {
		if frames, ok = q.take(frames, more); !ok {
			return
		}
		for rest := frames; len(rest) > 0; {
			h.hold()
			for count, bytes := 0, 0; len(rest) > 0 && count < pushFrames && bytes < pushBytes; count++ {
				n := 4 + int(binary.BigEndian.Uint32(rest))
				if c.Write(context.Background(), websocket.MessageText, rest[4:n]) != nil {
					q.close()
				}
				bytes += n
				rest = rest[n:]
			}
			if h.flush() != nil {
				q.close()
			}
		}
	}
}

// held is a connection whose writes are kept in memory between hold and flush.
// Control frames may be written at any time.
type held struct {
	io.ReadWriteCloser
	mu      sync.Mutex
	holding bool
	buf     []byte
}

func (h *held) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.holding {
		return h.ReadWriteCloser.Write(p)
	}
	h.buf = append(h.buf, p...)
	return len(p), nil
}

func (h *held) hold() {
	h.mu.Lock()
	h.holding = true
	h.mu.Unlock()
}

func (h *held) flush() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding = false
	_, err := h.ReadWriteCloser.Write(h.buf)
	h.buf = h.buf[:0]
	return err
}

package systems

import (
	"context"
	"io"
	"sync"

	"github.com/coder/websocket"

	"github.com/duetrpc/duet/bench/load"
)

// Coder is coder/websocket alone: a frame and a system call for each message. The
// reader of the echoing end writes the echo itself; callers write under a lock.
func Coder() load.System {
	return load.System{
		Name:  CoderName,
		Kinds: []load.Kind{load.Raw, load.Notify},
		Open: func(ctx context.Context, s load.Setup) (load.Pair, error) {
			ends, err := connect(ctx, s.Wire, nil, nil)
			if err != nil {
				return nil, err
			}
			p := &rawPair{close: ends.Close}
			var mu sync.Mutex
			var frame []byte
			p.send = func(id uint64, raw []byte, text string) error {
				mu.Lock()
				defer mu.Unlock()
				frame = appendFrame(frame[:0], id, raw, text)
				return ends.client.Write(context.Background(), websocket.MessageText, frame)
			}
			go p.readReplies(texts(ends.client))
			go p.echo(texts(ends.server), func(frame []byte) error {
				return ends.server.Write(context.Background(), websocket.MessageText, frame)
			})
			return p, nil
		},
	}
}

// texts returns what returns the text of the next message.
func texts(c *websocket.Conn) func() (io.Reader, error) {
	return func() (io.Reader, error) {
		_, r, err := c.Reader(context.Background())
		return r, err
	}
}

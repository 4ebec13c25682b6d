package systems

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/bench/load"
)

// A raw frame is an id of eight bytes and a text. The id is the slot that waits, so
// that a reply finds its caller by an index; a notification has an id of its own.
const (
	idBytes  = 8
	noteID   = 1<<64 - 1
	maxSlots = 1 << 16
)

// noteEnvelope is what JSON would put around the Text of a notified Doc: raw frames
// are padded by it, so that they carry as many bytes as those of the others.
var noteEnvelope = [...]byte{len(`{"seq":1000000000,"text":""}`) - 1: ' '}

var errRawClosed = errors.New("systems: the raw connection is closed")

// rawPair is the calling end of an echo without JSON, the limit for those with it.
// Replies are read into memory that belongs to the caller's context, without an
// allocation: every concurrent caller must come with a context of its own, and a
// reply is valid until the next call with the same context.
//
// A call does not heed the end of its context. The echo always answers.
type rawPair struct {
	send  func(id uint64, raw []byte, text string) error // may be used concurrently
	close func() error

	inFlight atomic.Int64 // calls sent, not answered
	handled  atomic.Uint64

	slots    [maxSlots]atomic.Pointer[slot]
	mu       sync.Mutex // guards what follows
	taken    int
	closed   error
	byCaller sync.Map // of *slot, by context.Context
}

// slot is one caller's place: a channel and a buffer, used again for each call.
type slot struct {
	id    uint64
	ready chan error
	reply []byte
}

func (p *rawPair) Call(context.Context, *load.Doc, *load.Doc) error {
	return errors.New("systems: a raw echo has no typed calls")
}

func (p *rawPair) CallRaw(ctx context.Context, in json.RawMessage, out *json.RawMessage) error {
	s, err := p.slot(ctx)
	if err != nil {
		return err
	}
	p.inFlight.Add(1)
	if err := p.send(s.id, in, ""); err != nil {
		return err
	}
	err = <-s.ready
	*out = s.reply
	return err
}

func (p *rawPair) Notify(_ context.Context, in *load.Doc) error {
	return p.send(noteID, noteEnvelope[:], in.Text)
}

func (p *rawPair) Handled() uint64 { return p.handled.Load() }

func (p *rawPair) Close() error { return p.close() }

// more reports whether more calls are in flight than these.
func (p *rawPair) more(frames int) bool { return int64(frames) < p.inFlight.Load() }

// slot is the place of the caller with this context.
func (p *rawPair) slot(ctx context.Context) (*slot, error) {
	if s, ok := p.byCaller.Load(ctx); ok {
		return s.(*slot), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return nil, p.closed
	}
	if p.taken == maxSlots {
		return nil, errors.New("systems: too many callers of a raw echo")
	}
	s := &slot{id: uint64(p.taken), ready: make(chan error, 1)}
	p.slots[p.taken].Store(s)
	p.taken++
	p.byCaller.Store(ctx, s)
	return s, nil
}

// waiting is the slot that waits for a frame with this id.
func (p *rawPair) waiting(id uint64) (*slot, error) {
	if id < maxSlots {
		if s := p.slots[id].Load(); s != nil {
			return s, nil
		}
	}
	return nil, errors.New("systems: a raw echo of an id that nobody sent")
}

// settle wakes the caller whose reply is complete.
func (p *rawPair) settle(s *slot) {
	p.inFlight.Add(-1)
	s.ready <- nil
}

// readReplies reads replies straight into the memory of those who wait for them.
// next returns the text of the next message.
func (p *rawPair) readReplies(next func() (io.Reader, error)) {
	// The first read takes all of a small frame: each costs a WebSocket library a
	// lock or two.
	var first [4 << 10]byte
	for {
		r, err := next()
		var n int
		if err == nil {
			n, err = io.ReadAtLeast(r, first[:], idBytes)
		}
		var s *slot
		if err == nil {
			s, err = p.waiting(binary.BigEndian.Uint64(first[:]))
		}
		if err == nil {
			s.reply, err = appendAll(append(s.reply[:0], first[idBytes:n]...), r)
		}
		if err != nil {
			p.fail(err)
			return
		}
		p.settle(s)
	}
}

// echo is the other end: it counts notifications and hands other frames to answer.
func (p *rawPair) echo(next func() (io.Reader, error), answer func(frame []byte) error) {
	var frame []byte
	for {
		r, err := next()
		if err == nil {
			frame, err = appendAll(frame[:0], r)
		}
		if err != nil || len(frame) < idBytes {
			return
		}
		if binary.BigEndian.Uint64(frame) == noteID {
			p.handled.Add(1)
		} else if answer(frame) != nil {
			return
		}
	}
}

// fail ends all calls, those to come included.
func (p *rawPair) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return
	}
	p.closed = errors.Join(errRawClosed, err)
	for i := range p.taken {
		select {
		case p.slots[i].Load().ready <- p.closed:
		default:
		}
	}
}

// appendFrame appends a frame to buf: id, then raw, then text.
func appendFrame(buf []byte, id uint64, raw []byte, text string) []byte {
	buf = slices.Grow(buf, idBytes+len(raw)+len(text))
	buf = binary.BigEndian.AppendUint64(buf, id)
	buf = append(buf, raw...)
	return append(buf, text...)
}

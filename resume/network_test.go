package resume

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/duetrpc/duet/wsconn"
)

// cable is a socket of this network: a way in each direction.
type cable struct {
	m    *model
	ways [2]chan parcel
	left [2]int // messages until it is lost; guarded by m.mu
	lose sync.Once
	gone chan struct{}    // nothing passes any more, though
	seen [2]chan struct{} // the ends learn it later
}

// parcel is a message, or the close frame.
type parcel struct {
	text []byte
	end  error
}

// plug is one end of a cable.
type plug struct {
	*cable
	side int
	once sync.Once
	over chan struct{} // closed here
	deaf bool          // what is on its way is lost; the reader's
}

func (m *model) cable() (a, b *plug) {
	c := &cable{m: m, gone: make(chan struct{}), left: [2]int{1 << 30, 1 << 30}}
	for i := range 2 {
		c.ways[i], c.seen[i] = make(chan parcel, 4096), make(chan struct{})
		if !m.isCalm() {
			c.left[i] = 1 + m.n(40)
		}
	}
	return &plug{cable: c, over: make(chan struct{})}, &plug{cable: c, side: 1, over: make(chan struct{})}
}

func (c *cable) cut() {
	c.lose.Do(func() {
		c.m.add(&c.m.tally.Cuts, 1)
		close(c.gone)
		for i := range 2 {
			delay := time.Duration(0)
			if c.m.chance(30) {
				delay = time.Duration(c.m.n(int(300 * time.Millisecond)))
			}
			time.AfterFunc(delay, func() { close(c.seen[i]) })
		}
	})
}

var errLost = &wsconn.CloseError{Code: 1006, Err: errors.New("lost")}

func (*plug) Subprotocol() string { return Subprotocol }
func (p *plug) Self() any         { return p }

func (p *plug) Read(ctx context.Context, buf []byte) ([]byte, error) {
	way := p.ways[1-p.side]
	select { // what was on its way when it was cut may still arrive, or not
	case <-p.gone:
		if p.deaf = p.deaf || p.m.chance(20); p.deaf {
			way = nil
		}
	default:
	}
	select {
	case got := <-way:
		if got.end != nil {
			return nil, got.end
		}
		if p.m.chance(5) || isLine(got.text) && p.m.chance(20) {
			p.m.pause(30 * time.Millisecond)
		}
		return append(buf, got.text...), nil
	case <-p.seen[p.side]:
		return nil, errLost
	case <-p.over:
		return nil, errLost
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *plug) Write(_ context.Context, msgs ...[]byte) error {
	if p.m.chance(10) {
		p.m.pause(30 * time.Millisecond)
	}
	for _, msg := range msgs {
		select {
		case <-p.gone: // what follows a message that was lost is lost, too
			select {
			case <-p.seen[p.side]:
				return errLost
			default:
				continue
			}
		default:
		}
		select {
		case <-p.seen[p.side]:
			return errLost
		case <-p.over:
			return errLost
		case <-p.gone: // and nobody knows
			continue
		case p.ways[p.side] <- parcel{text: append([]byte(nil), msg...)}:
		}
		p.m.mu.Lock()
		p.left[p.side]--
		last := p.left[p.side] == 0
		p.m.mu.Unlock()
		if last {
			p.cut()
		}
	}
	return nil
}

func (p *plug) TryWrite(msg []byte) (took, flushed bool) {
	select {
	case <-p.gone:
		return false, false
	default:
	}
	if p.m.chance(30) {
		return false, false
	}
	_ = p.Write(context.Background(), msg)
	return true, p.m.chance(70)
}

func (p *plug) Close(cause error) error {
	p.once.Do(func() {
		end := &wsconn.CloseError{Code: 1000}
		var c closer
		if errors.As(cause, &c) {
			end.Code, end.Reason = c.WebSocketClose()
		} else if cause != nil {
			end.Code = 1011
		}
		close(p.over)
		select {
		case <-p.gone:
		case p.ways[p.side] <- parcel{end: end}:
		}
	})
	return nil
}

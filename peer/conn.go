package peer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/pending"
)

// The invariants of a connection, each with the test that holds it:
//
//  1. The reader blocks only in Transport.Read. It settles responses,
//     cancellations and control notifications itself, at once, past every
//     queue; it never writes, and of user code, the logger included, it runs
//     Control functions alone. A handler may call back. (TestReaderNeverBlocks)
//  2. One owner writes. A caller's context bounds its own waiting, never a Read
//     or a Write. (TestCallerContextNeverReachesTransport)
//  3. A call is in the table before its bytes can leave; each slot settles
//     exactly once; own ids come from a counter, at most 2^53-1, never reused.
//     (TestAnswerBeforeWriteReturns, and package pending)
//  4. Ids we issued and ids we received live in two tables. A second in-flight
//     request with the same id, null included, is refused and the first is
//     untouched. (TestSameIDBothWays, testdata/ids.txt)
//  5. No lock is held while calling user code, the logger, or the Transport.
//     (TestLoggerUsesConnection, TestCloseFromHandler,
//     TestContextUsesConnection)
//  6. What the other end can make this end hold is bounded, and is freed when
//     the handler returns, also after cancel or close. An answer over a bound
//     has its room reserved, or the connection ends. (TestOverload,
//     TestCancelKeepsSlot, TestSilentReaderIsBounded)
//  7. Notifications run in the order they arrived, one at a time; calls and
//     answers wait for those before them, within bounds. (TestOrder...)
//  8. When a caller's context ends the caller returns at once and the slot is
//     gone; a late answer is counted and completes nothing. (TestLateAnswer)
//  9. A handler's context ends when its call is cancelled or the connection
//     ends, with the cause. (TestHandlerContext, TestCancelFindsItsCall)
//  10. Close returns at once and may be called from a handler; Shutdown drains;
//     Done closes when every goroutine has ended. (TestClose..., TestShutdown)
//  11. The first cause wins and every waiter sees it. (TestFirstCause)
//  12. A handler's panic, and a result that cannot be sent, become -32603; so
//     does a forwarded error that was not forwarded on purpose. (TestPanic,
//     TestUnencodableResult, TestForwardedError)
//  13. One bad message never ends a connection, save for those RFC 6455 says
//     must; a hundred within ten seconds do. (TestRefusedMessages)
//  14. Every admitted call is answered exactly once, unless the profile's cancel
//     rule says silence. (FuzzConn, TestCancelSilent)
//  15. MessageBytes binds both ways: a message over it never leaves.
//     (TestOutgoingTooBig)

// Caller is the sending half of a connection: what a handler calls back with,
// and what Options.Outgoing wraps. See Conn for what the methods do.
type Caller interface {
	Call(ctx context.Context, method string, params, result any, opts ...CallOption) error
	Notify(ctx context.Context, method string, params any) error
}

// Conn is one end of a connection. Both ends are equal: each calls, notifies and
// answers. All methods may be used concurrently, also from handlers. A Conn ends
// when either end closes it, when the transport breaks, or when the other end
// passes a bound; it is then of no more use, and every method says so.
type Conn struct {
	opts       *Options
	rules      codec.Rules
	valueRules codec.Rules // of what goes into an envelope, which adds to its depth
	transport  Transport
	caller     Caller // through Options.Outgoing
	buffers    *buffers

	ctx      context.Context // ends with the connection
	cancel   context.CancelCauseFunc
	handlers context.Context // parent of the handlers' contexts; ends then too, or with BaseContext
	stop     context.CancelCauseFunc

	calls    *pending.Table[reply] // own calls
	active   atomic.Int64          // own calls in flight
	crew     crew
	out      outbox
	tryWrite func(msg []byte) (took, flushed bool)                                   // of the transport; nil where it has none
	readGrow func(context.Context, []byte, func([]byte, int) []byte) ([]byte, error) // likewise
	yield    func()                                                                  // likewise
	acks     acknowledger                                                            // the transport; nil where it is none
	events   events
	stats    counters

	plainJSON bool // JSON is JSONv2
	plain     bool // and Handler is a Registry

	goroutines atomic.Int64 // how many of ours run; the last one out closes done
	done       chan struct{}
	onDone     func() // nil, or what the Server does then

	controls controls
	session  session

	mu       sync.Mutex
	ended    bool
	cause    error
	draining chan struct{} // not nil while shutting down; closed when there is nothing left
	drained  bool
	served   served
	order    order
	yielders map[int64]*requestContext // by own call: the notification that waits in it; nil until needed
	reserved atomic.Int64              // by Reserve
	yielding atomic.Int64              // how many those are, for who need not wait for mu to see that there are none

	isDraining atomic.Bool // draining is not nil

	// The reader's.
	refused refusals
	params  codec.Object // of the notification that a Control function runs for
	reading *buffer      // what is being read lies in it, where the transport has ReadGrow
	grow    func([]byte, int) []byte
}

// New makes a connection over t and starts reading. It panics with an
// *OptionError if opts are wrong, and in words if t is nil.
func New(t Transport, opts *Options) *Conn {
	if t == nil {
		panic("peer: New needs a Transport")
	}
	p, err := opts.prepare()
	if err != nil {
		panic(err)
	}
	return newConn(t, p, p.BaseContext, &buffers{}, nil)
}

// newConn makes a connection of prepared options.
func newConn(t Transport, opts *Options, parent context.Context, pool *buffers, onDone func(*Conn)) *Conn {
	c := &Conn{
		opts:      opts,
		rules:     opts.Profile.Rules,
		transport: t,
		buffers:   pool,
		calls:     pending.New[reply](opts.Limits.Pending, opts.Limits.Abandoned),
		done:      make(chan struct{}),
	}
	if n := c.rules.BatchItems; n == 0 || n > opts.Limits.BatchItems {
		c.rules.BatchItems = opts.Limits.BatchItems
	}
	_, c.plainJSON = opts.JSON.(JSONv2)
	if _, ok := opts.Handler.(*Registry); ok {
		c.plain = c.plainJSON
	}
	if isItself(t) {
		if t, ok := t.(tryWriter); ok {
			c.tryWrite = t.TryWrite
		}
		if t, ok := t.(yielder); ok {
			c.yield = t.Yield
		}
		c.acks, _ = t.(acknowledger)
		if t, ok := t.(growReader); ok {
			c.readGrow, c.grow = t.ReadGrow, c.growReading
		}
	}
	c.valueRules.Depth = max(1, or(c.rules.Depth, 1000)-3) // array, message, error object
	c.valueRules.NoDuplicates = c.rules.NoDuplicates
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.handlers, c.stop = context.WithCancelCause(parent)
	c.out.init(opts.Limits.QueueBytes)
	c.events.c = c
	c.caller = outgoing{c}
	for i := len(opts.Outgoing) - 1; i >= 0; i-- {
		if c.caller = opts.Outgoing[i](c.caller); c.caller == nil {
			panic(&OptionError{Field: "Outgoing", Reason: "holds a function that returned nil"})
		}
	}
	if onDone != nil {
		c.onDone = func() { onDone(c) }
	}
	if cancel := &opts.Profile.Cancel; !cancel.Off {
		_, _ = c.controls.add(cancel.method(), "", codec.Key{}, c.cancelled) // it is the first
	}
	if opening := opts.Profile.Opening.Call; opening != "" {
		e := c.entryOf([]byte(opening))
		c.session.gated = e != nil && e.call != nil
	}
	c.goroutines.Store(1)
	go func() {
		defer c.leave()
		defer c.awaitTransport()
		defer c.end(errGone) // where user code ended the goroutine
		c.read()
	}()
	return c
}

// awaitTransport waits for what the transport does after its end, where it tells.
func (c *Conn) awaitTransport() {
	if t, ok := c.transport.(interface{ Done() <-chan struct{} }); ok {
		<-t.Done()
	}
}

// Close ends the connection and returns at once. Calls that wait fail with
// ErrClosed, handlers' contexts end, messages not yet written are dropped: use
// Shutdown to finish them. It never waits for a handler and may be called from
// one, and again. It returns nil.
func (c *Conn) Close() error {
	c.end(ErrClosed)
	return nil
}

// Done is closed when the connection has ended and every goroutine of it too,
// handlers included.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is nil while the connection is alive and after an orderly end: a Close or
// Shutdown of either end. Otherwise it is what ended the connection.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended || orderly(c.cause) {
		return nil
	}
	return c.cause
}

// Profile holds the rules of the connection. It is not to be changed.
func (c *Conn) Profile() *Profile { return c.opts.Profile }

// JSON is what encodes and decodes typed params and results here.
func (c *Conn) JSON() JSON { return c.opts.JSON }

// Context is the parent of the contexts of this connection's handlers. It has
// the values of the context that Authorize returned, or of the request where
// there is none, and of BaseContext; it ends with the connection, whose cause is
// then its own.
func (c *Conn) Context() context.Context { return c.handlers }

// Subprotocol is the WebSocket subprotocol both ends agreed on, "" for none or
// where the transport has no such thing.
func (c *Conn) Subprotocol() string {
	if t, ok := c.transport.(interface{ Subprotocol() string }); ok {
		return t.Subprotocol()
	}
	return ""
}

// Resumes reports whether the connection outlives its socket, as with package resume at
// both ends: then a call is sent when the other end has acknowledged it.
func (c *Conn) Resumes() bool { return c.acks != nil }

// end ends the connection. The first cause wins.
func (c *Conn) end(cause error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended, c.cause = true, cause
	local := errors.Is(cause, ErrClosed) || errors.Is(cause, ErrShutdown)
	dropped := c.order.end(cause, local)
	c.mu.Unlock()

	c.out.close()
	c.crew.end()
	c.cancel(cause)
	c.stop(cause)
	c.calls.Fail(cause)
	for _, r := range dropped {
		c.drop(r)
	}
	told := cause
	if cause == ErrClosed || cause == ErrShutdown {
		told = nil
	}
	c.guard("Transport.Close", func() {
		if err := c.transport.Close(told); err != nil {
			c.log(slog.LevelInfo, "duet: closing the transport", slog.Any("error", err))
		}
	})
	if !orderly(cause) {
		c.log(slog.LevelWarn, "duet: connection ended", slog.Any("error", cause))
	}
}

// endCause is what the connection ended with, or nil.
func (c *Conn) endCause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// spawn runs f in a goroutine that Done waits for. It reports false, and does
// nothing, if the connection is done already.
func (c *Conn) spawn(f func()) bool {
	for {
		n := c.goroutines.Load()
		if n == 0 {
			return false
		}
		if c.goroutines.CompareAndSwap(n, n+1) {
			break
		}
	}
	go func() {
		defer c.leave()
		f()
	}()
	return true
}

// leave is the last thing each goroutine of a connection does.
func (c *Conn) leave() {
	if c.goroutines.Add(-1) == 0 {
		close(c.done)
		if c.onDone != nil {
			c.onDone()
		}
	}
}

// log writes a line from the goroutine of events, since a logger may block, or
// log over this very connection.
func (c *Conn) log(level slog.Level, msg string, attrs ...slog.Attr) {
	c.events.enqueue(notice{line: &line{level, msg, attrs}})
}

// guard runs user code that has no caller to panic to.
func (c *Conn) guard(name string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			_ = c.panicked(name, v)
		}
	}()
	f()
}

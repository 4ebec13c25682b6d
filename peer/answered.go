package peer

import "context"

// Answered has f called once the answer to the call whose handler ctx belongs to is
// queued, so that what f sends comes after it; with the error that kept it from being
// sent where it was not, context.Canceled where the profile wants silence. The handler's
// goroutine waits for f, which must not wait for what the call holds up. Answered
// reports false, and f is not called, for any other context and once the handler has
// returned.
func Answered(ctx context.Context, f func(error)) bool {
	own := requestOf(ctx)
	if own == nil || own.notification {
		return false
	}
	own.c.mu.Lock()
	defer own.c.mu.Unlock()
	if own.in == nil || own.isOver() {
		return false
	}
	own.in.after = append(own.in.after, f)
	return true
}

// tell calls what was given to Answered.
func (c *Conn) tell(r *incoming, err error) {
	for _, f := range r.after { // the handler has returned, and nobody adds to it any more
		told := make(chan struct{})
		if c.spawn(func() { // which user code may end (runtime.Goexit)
			defer close(told)
			c.guard("Answered", func() { f(err) })
		}) {
			<-told
		}
	}
	r.after = nil
}

package stream

import "errors"

// ended is how a call ended that ran in a goroutine of this package.
type ended[Out any] struct {
	out      Out
	err      error
	panicked any // what user code panicked with, or nil
}

// raise panics where the goroutine did, for who waits for the result: there it would
// have had nobody to stop it.
func (e *ended[Out]) raise() {
	if e.panicked != nil {
		panic(e.panicked)
	}
}

// errGoexit is the result of a call whose goroutine user code has ended
// (runtime.Goexit).
var errGoexit = errors.New("stream: user code ended the goroutine of the call")

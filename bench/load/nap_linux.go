package load

import (
	"syscall"
	"time"
)

// nap sleeps for a fraction of a millisecond. Go's own timers are no finer than
// one on a machine that has nothing else to do.
func nap(d time.Duration) {
	span := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&span, nil) // a signal may cut it short
}

package peer

import (
	"errors"
	"strconv"
	"time"

	"github.com/duetrpc/duet/codec"
)

// timeoutName is the member of params._meta that tells how many milliseconds the
// caller waits, counted from when the call was made.
const timeoutName = "io.github.duetrpc/timeout"

// maxTimeout bounds what is taken from the other end, so that it can be counted.
const maxTimeout = 10 * 365 * 24 * time.Hour

func timeoutMember(left time.Duration) codec.Member {
	ms := max(0, left/time.Millisecond)
	if left > ms*time.Millisecond {
		ms++ // rounding up by adding would pass what a Duration holds
	}
	return codec.Member{Name: timeoutName, Value: strconv.AppendInt(nil, int64(ms), 10)}
}

// timeoutOf returns the time that the caller of a call with params waits. It reports
// false where that is not said.
func timeoutOf(params []byte) (time.Duration, bool) {
	value := codec.Find(codec.Find(params, metaMember), timeoutName)
	if len(value) == 0 || value[0] == '"' {
		return 0, false
	}
	ms, err := strconv.ParseFloat(string(value), 64)
	if errors.Is(err, strconv.ErrSyntax) || ms < 0 {
		return 0, false
	}
	if ms >= float64(maxTimeout/time.Millisecond) {
		return maxTimeout, true
	}
	return time.Duration(ms * float64(time.Millisecond)), true
}

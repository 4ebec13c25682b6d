package peer

// Reserve takes bytes of Limits.StreamBytes, for packages that let a handler be sent
// more than the params of its call: up to most, and no more than a quarter of what is
// left, so that others find some, too. Where that is less than least it takes none.
// What it returns was taken, and is given back with Unreserve.
func (c *Conn) Reserve(least, most int64) int64 {
	for {
		reserved := c.reserved.Load()
		n := min(most, (c.opts.Limits.StreamBytes-reserved)/4)
		if n <= 0 || n < least {
			return 0
		}
		if c.reserved.CompareAndSwap(reserved, reserved+n) {
			return n
		}
	}
}

// Unreserve gives n bytes back that Reserve took.
func (c *Conn) Unreserve(n int64) { c.reserved.Add(-n) }

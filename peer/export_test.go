package peer

// WithDefaults lets a test see what zero fields mean.
func (l Limits) WithDefaults() Limits { return l.withDefaults() }

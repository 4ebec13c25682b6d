package stream

// Held returns how many subscriptions t keeps, and of how many connections.
func (t *Topics) Held() (subscriptions, conns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.conns {
		subscriptions += len(all)
	}
	return subscriptions, len(t.conns)
}

// Waits reports whether s has a timer for credit, which nobody wants.
func (s *Subscription[Item]) Waits() bool { return s.in.timer != nil }

// Held returns how many subscriptions s knows, and how many notifications it keeps that
// came early.
func (s *Subscriber) Held() (subscriptions int, early int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.held.items
}

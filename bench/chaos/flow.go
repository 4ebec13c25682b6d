package main

import "sync"

// flow judges what arrives of a row of numbered messages.
type flow struct {
	anyOrder bool // none is promised

	mu      sync.Mutex
	issued  uint64              // numbers that were given out
	next    uint64              // of what is to come
	missing map[uint64]struct{} // of those before next
	unsent  map[uint64]struct{} // were said not to have been sent

	doubled   int // arrived twice, or though they were not sent
	reordered int // arrived after a later one
}

// issue gives out the next number.
func (f *flow) issue() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.issued++
	return f.issued - 1
}

// got notes that a message has arrived.
func (f *flow) got(n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.unsent[n]; ok || n >= f.issued {
		f.doubled++
		return
	}
	if n >= f.next {
		for ; f.next < n; f.next++ {
			if f.missing == nil {
				f.missing = make(map[uint64]struct{})
			}
			f.missing[f.next] = struct{}{}
		}
		f.next++
		return
	}
	if _, ok := f.missing[n]; !ok {
		f.doubled++
		return
	}
	delete(f.missing, n)
	if !f.anyOrder {
		f.reordered++
	}
}

// deny notes that a message was said not to have been sent: so it must not have arrived,
// and must not arrive.
func (f *flow) deny(n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.missing[n]; n < f.next && !ok {
		f.doubled++
		return
	}
	if f.unsent == nil {
		f.unsent = make(map[uint64]struct{})
	}
	f.unsent[n] = struct{}{}
}

// lost is how many have not arrived, of those that were sent.
func (f *flow) lost() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.missing) + int(f.issued-f.next) - len(f.unsent)
}

// faults are the others.
func (f *flow) faults() (doubled, reordered int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doubled, f.reordered
}

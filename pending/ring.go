package pending

// A ring finds slots by their ids, which are given out one after the other: the
// low bits of an id are its place. A call that stays open while the ids come
// round to its place again stays there, and the newer one goes to a map.
//
// The zero value is empty.
type ring[R any] struct {
	places []*Slot[R]         // nil, or a power of two of them
	others map[int64]*Slot[R] // those whose place was taken; nil until there is one
	count  int                // of all
}

const (
	leastPlaces = 16
	keptPlaces  = 1 << 10 // of an empty ring: it held a burst if it has more
)

func (r *ring[R]) place(id int64) int { return int(id) & (len(r.places) - 1) }

// put adds s, whose id is not there yet.
func (r *ring[R]) put(s *Slot[R]) {
	if 2*r.count >= len(r.places) {
		r.grow()
	}
	r.count++
	r.settle(s)
}

// settle gives s its place, or one beside.
func (r *ring[R]) settle(s *Slot[R]) {
	if at := r.place(s.ID); r.places[at] == nil {
		r.places[at] = s
		return
	}
	if r.others == nil {
		r.others = make(map[int64]*Slot[R])
	}
	r.others[s.ID] = s
}

func (r *ring[R]) grow() {
	all := r.all()
	r.places, r.others = make([]*Slot[R], max(leastPlaces, 2*len(r.places))), nil
	for _, s := range all {
		r.settle(s)
	}
}

// find returns the slot of id, or nil.
func (r *ring[R]) find(id int64) *Slot[R] {
	if len(r.places) == 0 {
		return nil
	}
	if s := r.places[r.place(id)]; s != nil && s.ID == id {
		return s
	}
	return r.others[id]
}

// take removes the slot of id and returns it, or nil.
func (r *ring[R]) take(id int64) *Slot[R] {
	s := r.find(id)
	if s == nil {
		return nil
	}
	if at := r.place(id); r.places[at] == s {
		r.places[at] = nil
	} else {
		delete(r.others, id)
	}
	if r.count--; r.count == 0 && len(r.places) > keptPlaces {
		*r = ring[R]{}
	}
	return s
}

// all returns the slots in no order.
func (r *ring[R]) all() []*Slot[R] {
	all := make([]*Slot[R], 0, r.count)
	for _, s := range r.places {
		if s != nil {
			all = append(all, s)
		}
	}
	for _, s := range r.others {
		all = append(all, s)
	}
	return all
}

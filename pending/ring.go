package pending

// A Ring finds values by ids that are mostly given out one after the other: the low
// bits of an id are its place. A value that stays while the ids come round to its
// place again stays there, and the newer one goes to a map.
//
// The zero value is empty. It is not for concurrent use.
type Ring[T any] struct {
	places []place[T]   // nil, or a power of two of them
	others map[int64]*T // those whose place was taken; nil until there is one
	count  int          // of all
}

// place is empty where value is nil.
type place[T any] struct {
	id    int64
	value *T
}

const (
	leastPlaces = 16
	keptPlaces  = 1 << 10 // of an empty ring: it held a burst if it has more
)

func (r *Ring[T]) at(id int64) *place[T] { return &r.places[int(id)&(len(r.places)-1)] }

// Len is the number of values.
func (r *Ring[T]) Len() int { return r.count }

// Put adds v, which is not nil, under an id that is not there yet.
func (r *Ring[T]) Put(id int64, v *T) {
	if 2*r.count >= len(r.places) {
		r.grow()
	}
	r.count++
	r.settle(id, v)
}

// settle gives v its place, or one beside.
func (r *Ring[T]) settle(id int64, v *T) {
	if p := r.at(id); p.value == nil {
		*p = place[T]{id, v}
		return
	}
	if r.others == nil {
		r.others = make(map[int64]*T)
	}
	r.others[id] = v
}

func (r *Ring[T]) grow() {
	old := *r
	r.places, r.others = make([]place[T], max(leastPlaces, 2*len(old.places))), nil
	old.each(r.settle)
}

// Find returns the value of id, or nil.
func (r *Ring[T]) Find(id int64) *T {
	if len(r.places) == 0 {
		return nil
	}
	if p := r.at(id); p.id == id && p.value != nil {
		return p.value
	}
	return r.others[id]
}

// Take removes the value of id and returns it, or nil.
func (r *Ring[T]) Take(id int64) *T {
	v := r.Find(id)
	if v == nil {
		return nil
	}
	if p := r.at(id); p.id == id && p.value != nil {
		*p = place[T]{}
	} else {
		delete(r.others, id)
	}
	if r.count--; r.count == 0 && len(r.places) > keptPlaces {
		*r = Ring[T]{}
	}
	return v
}

// each calls f for all values, in no order.
func (r *Ring[T]) each(f func(id int64, v *T)) {
	for _, p := range r.places {
		if p.value != nil {
			f(p.id, p.value)
		}
	}
	for id, v := range r.others {
		f(id, v)
	}
}

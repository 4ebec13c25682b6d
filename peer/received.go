package peer

import "github.com/duetrpc/duet/codec"

// received finds the calls that are in flight by the ids the other end gave them.
// Nearly every end numbers its calls, and those are found fastest. The zero value
// is empty.
type received struct {
	numbered map[int64]*incoming     // by ids that are integers; nil until needed
	others   map[codec.Key]*incoming // nil until needed
}

func (f *received) find(id codec.ID) *incoming {
	if n, ok := id.Int64(); ok {
		return f.numbered[n]
	}
	return f.others[id.Key()]
}

// add adds r, whose id is not there yet.
func (f *received) add(r *incoming) {
	if n, ok := r.id.Int64(); ok {
		if f.numbered == nil {
			f.numbered = make(map[int64]*incoming)
		}
		f.numbered[n] = r
		return
	}
	if f.others == nil {
		f.others = make(map[codec.Key]*incoming)
	}
	f.others[r.id.Key()] = r
}

func (f *received) remove(r *incoming) {
	if n, ok := r.id.Int64(); ok {
		delete(f.numbered, n)
		return
	}
	delete(f.others, r.id.Key())
}

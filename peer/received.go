package peer

import (
	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/pending"
)

// received finds the calls that are in flight by the ids the other end gave them.
// Nearly every end numbers its calls, and those are found fastest. The zero value
// is empty.
type received struct {
	numbered pending.Ring[incoming]  // by ids that are integers
	others   map[codec.Key]*incoming // nil until needed
}

func (f *received) find(id codec.ID) *incoming {
	if n, ok := id.Int64(); ok {
		return f.numbered.Find(n)
	}
	return f.others[id.Key()]
}

// add adds r, whose id is not there yet.
func (f *received) add(r *incoming) {
	if n, ok := r.id.Int64(); ok {
		f.numbered.Put(n, r)
		return
	}
	if f.others == nil {
		f.others = make(map[codec.Key]*incoming)
	}
	f.others[r.id.Key()] = r
}

func (f *received) remove(r *incoming) {
	if n, ok := r.id.Int64(); ok {
		f.numbered.Take(n)
		return
	}
	delete(f.others, r.id.Key())
}

package stream

import (
	"reflect"
	"sync"

	"github.com/duetrpc/duet/peer"
)

// boxes are the memory that items are encoded from and decoded into, which serves again
// where no code of a user's could have kept a pointer into it.
type boxes[Item any] struct {
	pool *sync.Pool // of *Item; nil where they serve once
}

func boxesOf[Item any]() boxes[Item] {
	if !peer.Reusable(reflect.TypeFor[Item]()) {
		return boxes[Item]{}
	}
	return boxes[Item]{new(sync.Pool)}
}

// put returns a box with item in it.
func (b boxes[Item]) put(item Item) *Item {
	if b.pool != nil {
		if box, ok := b.pool.Get().(*Item); ok {
			*box = item
			return box
		}
	}
	box := new(Item)
	*box = item
	return box
}

// free takes a box back.
func (b boxes[Item]) free(box *Item) {
	if b.pool != nil {
		b.pool.Put(b.empty(box))
	}
}

// empty returns an empty box in exchange for one.
func (b boxes[Item]) empty(box *Item) *Item {
	if b.pool == nil {
		return new(Item)
	}
	var none Item
	*box = none
	return box
}

package pending

// SetLast makes the table believe that id was the last one it gave out.
func (t *Table[R]) SetLast(id int64) { t.last = id }

// Places is how many places the table keeps, and how many calls lie beside.
func (t *Table[R]) Places() (places, beside int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.slots.places), len(t.slots.others)
}

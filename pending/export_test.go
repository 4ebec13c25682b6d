package pending

// SetLast makes the table believe that id was the last one it gave out.
func (t *Table[R]) SetLast(id int64) { t.last = id }

package codec

// keepMessages bounds how many messages an Envelope keeps room for between
// texts: an end that once got a large batch does not hold on to its memory.
const keepMessages = 64

// An Envelope is what one text of the transport carries: a message or a batch.
// The zero Envelope is ready. Decode reuses it, so a reader needs only one; until
// then it holds on to the text. It is not for concurrent use.
type Envelope struct {
	Batch    bool      // the text is an array
	Fault    Fault     // not NoFault: the array is refused whole, with one InvalidRequest and id null
	Messages []Message // in the order of the text; empty when the array is refused

	scan objectScanner
}

// Decode replaces the contents of e by those of text. A nil rules means base
// JSON-RPC 2.0. The messages alias text, which Decode neither changes nor
// keeps; decoding one valid message allocates nothing, unless it is an error
// response or has a method with escapes.
//
// The error is a [*SyntaxError], and e is then empty: what is no JSON text, or
// nests too deep, has no messages, even where its first part would have had.
func (e *Envelope) Decode(text []byte, rules *Rules) error {
	var base Rules
	if rules == nil {
		rules = &base
	}
	e.Batch, e.Fault = false, NoFault
	e.empty()
	s := &e.scan
	s.reset(text)
	s.limit, s.unique = rules.depth(), rules.NoDuplicates

	// One transport message is one JSON text. Two texts in a row are refused
	// whole, so that the second is not lost in silence.
	i := space(text, 0)
	if at(text, i) == '[' {
		e.Batch = true
		i = e.batch(i, rules)
	} else {
		i = e.message(i, 0, rules)
	}
	if i >= 0 {
		if i = space(text, i); i < len(text) {
			i = s.fail(i, "text after the value")
		}
	}
	err := s.err
	s.reset(nil) // the scratch must not keep the text alive
	if i < 0 {
		e.Batch, e.Fault = false, NoFault
		e.empty()
		return err
	}
	return nil
}

// empty lets go of the messages and what they alias, and of their room if it is
// more than usual.
func (e *Envelope) empty() {
	clear(e.Messages)
	e.Messages = e.Messages[:0]
	if cap(e.Messages) > keepMessages {
		e.Messages = nil
	}
}

// batch reads the array at text[i]. It is whole or nothing: also the elements
// that will not be looked at have to be JSON.
func (e *Envelope) batch(i int, rules *Rules) int {
	s := &e.scan
	if rules.NoBatch {
		e.Fault = BatchForbidden
		return s.value(i, 0)
	}
	i = space(s.text, i+1)
	if at(s.text, i) == ']' {
		e.Fault = BatchEmpty
		return i + 1
	}
	for {
		if len(e.Messages) < rules.batchItems() {
			i = e.message(i, 1, rules)
		} else {
			e.Fault = BatchTooLong
			i = s.value(i, 1)
		}
		if i < 0 {
			return -1
		}
		i = space(s.text, i)
		switch at(s.text, i) {
		case ',':
			i = space(s.text, i+1)
		case ']':
			if e.Fault != NoFault {
				e.empty()
			}
			return i + 1
		default:
			return s.failToken(i, "comma or ]")
		}
	}
}

// message reads the message at text[i]; depth is 1 inside a batch and else 0.
// Whatever JSON stands there becomes a message, since a bad one is answered in
// its place (JSON-RPC 2.0 section 6); an array inside an array is a bad one.
func (e *Envelope) message(i, depth int, rules *Rules) int {
	s := &e.scan
	e.Messages = append(e.Messages, Message{})
	m := &e.Messages[len(e.Messages)-1]
	if at(s.text, i) != '{' {
		m.Fault, m.ID = NotObject, NullID()
		return s.value(i, depth)
	}
	s.got.seen, s.twice, s.got.text = 0, 0, 0
	from := i
	if i = s.object(i, depth, false); i >= 0 {
		m.Text = s.text[from:i:i]
		s.classify(m, depth > 0, rules)
	}
	return i
}

// Check reports whether value is exactly one JSON value, by the grammar, the
// UTF-8 and the depth that Decode holds a text to, and without duplicate names
// where rules say so. A nil rules means base. The error is a [*SyntaxError].
func Check(value []byte, rules *Rules) error {
	var base Rules
	if rules == nil {
		rules = &base
	}
	s := scanner{text: value, limit: rules.depth(), unique: rules.NoDuplicates}
	i := s.value(space(value, 0), 0)
	if i >= 0 {
		if i = space(value, i); i < len(value) {
			i = s.fail(i, "text after the value")
		}
	}
	if i >= 0 && s.twice.has(nestedMember) {
		i = s.fail(s.twiceAt, "an object ends here that has a member twice")
	}
	if i < 0 {
		return s.err
	}
	return nil
}

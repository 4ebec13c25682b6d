package codec

// A member is one of those that have a meaning, in the envelope or in the
// error object, or stands for a whole class of others.
type member uint8

const (
	versionMember member = iota
	idMember
	methodMember
	paramsMember
	resultMember
	errorMember
	codeMember // from here on: of the error object
	messageMember
	dataMember
	unknownMember // any other name in one of the two
	nestedMember  // a name anywhere else
)

// A set of members, one bit each.
type set uint16

func (s *set) add(m member)     { *s |= 1 << m }
func (s set) has(m member) bool { return s&(1<<m) != 0 }

// members is what one object of the wire consists of.
type members struct {
	seen  set       // present
	twice set       // present more than once
	text  set       // a string, at least one of them
	spans [9][2]int // from and to of the first value; what it was before, unless seen
}

// known returns the member with exactly this name, which has no escapes left.
// Case counts: "Method" is an extra member, as "code" is outside of the error
// object. JSON-RPC 2.0 section 2 says that names are case-sensitive.
func known(name []byte, inError bool) member {
	if inError {
		switch string(name) {
		case "code":
			return codeMember
		case "message":
			return messageMember
		case "data":
			return dataMember
		}
		return unknownMember
	}
	switch string(name) {
	case "jsonrpc":
		return versionMember
	case "id":
		return idMember
	case "method":
		return methodMember
	case "params":
		return paramsMember
	case "result":
		return resultMember
	case "error":
		return errorMember
	}
	return unknownMember
}

// object passes over the object at text[i], an envelope or the error object in
// one, and notes its members in got. It calls itself for the error object only,
// so once at most: in that, no member is the error member.
//
// Known names are counted by bits. The others are gathered like those of nested
// objects, since which ones there are is the sender's choice.
func (s *scanner) object(i, depth int, inError bool) int {
	if depth >= s.limit {
		return s.fail(i, "nesting too deep")
	}
	text := s.text
	base := len(s.names)
	i = space(text, i+1)
	if at(text, i) == '}' {
		return i + 1
	}
	for {
		from := i
		if at(text, i) != '"' {
			return s.failToken(i, "a member name")
		}
		if i = s.str(i); i < 0 {
			return -1
		}
		name := unquote(text[from:i])
		if i = s.colon(i); i < 0 {
			return -1
		}
		m := known(name, inError)
		from = i
		switch c := at(text, i); {
		case c == '"':
			s.got.text.add(m)
			i = s.str(i)
		case c == '{' && m == errorMember:
			i = s.object(i, depth+1, true)
		default:
			i = s.value(i, depth+1)
		}
		if i < 0 {
			return -1
		}
		// Where a member stands twice the first value stays, for the id and the
		// method that the refusal names.
		switch {
		case m == unknownMember:
			s.names = append(s.names, name)
			s.got.seen.add(m)
		case s.got.seen.has(m):
			s.got.twice.add(m)
		default:
			s.got.seen.add(m)
			s.got.spans[m] = [2]int{from, i}
		}
		i = space(text, i)
		switch at(text, i) {
		case ',':
			i = space(text, i+1)
		case '}':
			s.closeNames(base, i, unknownMember)
			return i + 1
		default:
			return s.failToken(i, "comma or }")
		}
	}
}

// raw returns the text of a member that was seen. Its capacity ends with it:
// a handler that appends to its params must not write into what follows.
func (s *scanner) raw(m member) []byte {
	span := s.got.spans[m]
	return s.text[span[0]:span[1]:span[1]]
}

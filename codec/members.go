package codec

import "encoding/binary"

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

// objectScanner is a scanner that knows the objects of the wire. It is a type of its
// own so that Check, which needs no notes of members, has none to clear.
type objectScanner struct {
	scanner
	got members
}

// members is what one object of the wire consists of.
type members struct {
	seen  set       // present
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

// knownAt returns which member of an envelope the name at text[i] is, and the index
// after it, or unknownMember where that takes a closer look: for another name, one
// with escapes, and near the end of the text.
func knownAt(text []byte, i int) (m member, end int) {
	const name = 1 + 8 // bytes looked at
	if len(text)-i < name || text[i] != '"' {
		return unknownMember, 0
	}
	// Each constant is the name with its closing quote, the first byte in the low bits.
	switch x := binary.LittleEndian.Uint64(text[i+1:]); {
	case x == 'j'|'s'<<8|'o'<<16|'n'<<24|'r'<<32|'p'<<40|'c'<<48|'"'<<56:
		return versionMember, i + len(`"jsonrpc"`)
	case x&(1<<24-1) == 'i'|'d'<<8|'"'<<16:
		return idMember, i + len(`"id"`)
	case x&(1<<56-1) == 'm'|'e'<<8|'t'<<16|'h'<<24|'o'<<32|'d'<<40|'"'<<48:
		return methodMember, i + len(`"method"`)
	case x&(1<<56-1) == 'p'|'a'<<8|'r'<<16|'a'<<24|'m'<<32|'s'<<40|'"'<<48:
		return paramsMember, i + len(`"params"`)
	case x&(1<<56-1) == 'r'|'e'<<8|'s'<<16|'u'<<24|'l'<<32|'t'<<40|'"'<<48:
		return resultMember, i + len(`"result"`)
	case x&(1<<48-1) == 'e'|'r'<<8|'r'<<16|'o'<<24|'r'<<32|'"'<<40:
		return errorMember, i + len(`"error"`)
	}
	return unknownMember, 0
}

// object passes over the object at text[i], an envelope or the error object in
// one, and notes its members in got. It calls itself for the error object only,
// so once at most: in that, no member is the error member.
//
// Known names are counted by bits. The others are gathered like those of nested
// objects, since which ones there are is the sender's choice.
func (s *objectScanner) object(i, depth int, inError bool) int {
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
		var name []byte
		m, end := knownAt(text, i)
		if inError || m == unknownMember {
			if at(text, i) != '"' {
				return s.failToken(i, "a member name")
			}
			if end = s.str(i); end < 0 {
				return -1
			}
			name = unquote(text[i:end])
			m = known(name, inError)
		}
		if i = s.colon(end); i < 0 {
			return -1
		}
		from := i
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
			s.twice.add(m)
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
func (s *objectScanner) raw(m member) []byte {
	span := s.got.spans[m]
	return s.text[span[0]:span[1]:span[1]]
}

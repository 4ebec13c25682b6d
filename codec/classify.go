package codec

import (
	"bytes"
	"math/bits"
)

// classify fills in m from the members of an object. Which members are present
// decides the kind of the message, before anything in them is judged, so a
// fault never turns a response into something to run or to answer, nor a call
// into a notification.
func (s *objectScanner) classify(m *Message, inBatch bool, rules *Rules) {
	got := &s.got
	if got.seen.has(methodMember) {
		s.request(m, inBatch, rules)
		return
	}
	// Without a method the id is not the sender's own but one of ours, or is
	// meant to be: the rules for the ids of requests do not apply.
	var id ID
	fault := IDMissing
	if got.seen.has(idMember) {
		id, fault = idOf(s.raw(idMember))
	}
	if s.twice.has(idMember) {
		id = ID{}
	}
	switch {
	// A response candidate.
	case got.seen.has(resultMember) || got.seen.has(errorMember):
		m.ID = id
		s.response(m, fault, rules)
	// Version and id and nothing else, not even an extra member.
	case got.seen|1<<versionMember == 1<<versionMember|1<<idMember && got.seen.has(idMember) && s.common(rules) == NoFault && fault == NoFault:
		m.Kind, m.ID = Bare, id
	// Not clearly a request, so an id in it is no id to answer to.
	default:
		m.Kind, m.ID = Invalid, NullID()
		if m.Fault = s.common(rules); m.Fault == NoFault {
			m.Fault = MethodMissing
		}
	}
}

// common returns what is wrong with an object whatever its kind. Duplicates
// come first: which of two members was meant is not ours to guess.
func (s *objectScanner) common(rules *Rules) Fault {
	if s.twice != 0 {
		return VersionTwice + Fault(bits.TrailingZeros16(uint16(s.twice)))
	}
	if rules.NoVersion && !s.got.seen.has(versionMember) {
		return NoFault
	}
	if !s.got.text.has(versionMember) || string(unquote(s.raw(versionMember))) != "2.0" {
		return VersionWrong
	}
	return NoFault
}

// request judges an object with a method member (JSON-RPC 2.0 section 4).
func (s *objectScanner) request(m *Message, inBatch bool, rules *Rules) {
	got := &s.got
	if method := s.raw(methodMember); method[0] == '"' {
		m.Method = unquote(method)
	}
	m.Fault = s.requestFault(m.Method, inBatch, rules)

	// With neither an id nor a string method it is not clear that nobody
	// waits for an answer, so that is no notification.
	if !got.seen.has(idMember) {
		switch {
		case !got.text.has(methodMember):
			m.Kind, m.ID = Invalid, NullID()
		case m.Fault != NoFault:
			m.Kind = BadNotification
		default:
			m.Kind = Notification
			m.Params = s.params()
		}
		return
	}

	// An error with a guessed id would complete a call of the other end, so
	// only a request's own, single and accepted id is used.
	id, fault := idOf(s.raw(idMember))
	if fault == NoFault && !rules.allow(id) {
		fault = IDRefused
	}
	if m.Fault == NoFault {
		m.Fault = fault
	}
	switch {
	case fault != NoFault || s.twice.has(idMember):
		m.Kind, m.ID = Invalid, NullID()
	case m.Fault != NoFault:
		m.Kind, m.ID = Invalid, id
	default:
		m.Kind, m.ID = Call, id
		m.Params = s.params()
	}
}

// requestFault returns what is wrong with a request apart from its id, which
// also decides about the reply and so is judged by request itself.
func (s *objectScanner) requestFault(method []byte, inBatch bool, rules *Rules) Fault {
	got := &s.got
	if fault := s.common(rules); fault != NoFault {
		return fault
	}
	switch {
	case !got.text.has(methodMember):
		return MethodNotString
	case got.seen.has(resultMember) || got.seen.has(errorMember):
		return MethodWithResult
	case inBatch && rules.keepsFromBatch(method):
		return MethodInBatch
	case !got.seen.has(paramsMember):
		return NoFault
	}
	switch s.raw(paramsMember)[0] {
	case '{':
		return NoFault
	case 'n':
		if rules.NullParams {
			return NoFault
		}
	case '[':
		if !rules.ObjectParams {
			return NoFault
		}
	}
	if rules.ObjectParams {
		return ParamsNotObject
	}
	return ParamsInvalid
}

// params returns the params of a request without faults. Null is among them
// only where it counts as absent.
func (s *objectScanner) params() []byte {
	if !s.got.seen.has(paramsMember) || s.raw(paramsMember)[0] == 'n' {
		return nil
	}
	return s.raw(paramsMember)
}

// response judges an object with a result or an error and no method. It is
// never dispatched and never answered, however broken it is.
func (s *objectScanner) response(m *Message, idFault Fault, rules *Rules) {
	got := &s.got
	m.Kind = BadResponse
	if m.Fault = s.common(rules); m.Fault != NoFault {
		return
	}
	if m.Fault = idFault; m.Fault != NoFault {
		return
	}
	// A null beside the other member says "not this one": both forms are in
	// use, though JSON-RPC 2.0 section 5 lets only one of the two exist.
	result := got.seen.has(resultMember)
	failure := got.seen.has(errorMember)
	if result && failure {
		result = s.raw(resultMember)[0] != 'n'
		failure = s.raw(errorMember)[0] != 'n'
	}
	switch {
	case result && failure:
		m.Fault = ResultWithError
	case failure:
		m.Error, m.Fault = s.errorObject()
	case !result:
		m.Fault = ResultMissing
	case rules.ObjectResult && s.raw(resultMember)[0] != '{':
		m.Fault = ResultNotObject
	default:
		m.Result = s.raw(resultMember)
	}
	if m.Fault == NoFault {
		m.Kind = Response
	}
}

// errorObject makes an Error of the error member (JSON-RPC 2.0 section 5.1). Its
// duplicates were found before. The code may be written as 5.0 or 5e0, since
// that is the same JSON number, but it has to be an integer.
func (s *objectScanner) errorObject() (*Error, Fault) {
	got := &s.got
	if s.raw(errorMember)[0] != '{' {
		return nil, ErrorNotObject
	}
	if !got.seen.has(codeMember) || !startsNumber(s.raw(codeMember)[0]) {
		return nil, ErrorCodeInvalid
	}
	code, ok := integer(s.raw(codeMember))
	if !ok {
		return nil, ErrorCodeInvalid
	}
	if !got.text.has(messageMember) {
		return nil, ErrorMessageInvalid
	}
	e := &Error{Code: Code(code), Message: readable(unquote(s.raw(messageMember)))}
	if got.seen.has(dataMember) {
		e.Data = bytes.Clone(s.raw(dataMember))
	}
	return e, NoFault
}

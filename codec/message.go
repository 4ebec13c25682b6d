package codec

// A Kind is what a message is taken for.
type Kind uint8

// The kinds. Only Call and Notification are ever dispatched, and only Call and
// Invalid are ever answered.
const (
	Invalid         Kind = iota // to be answered with InvalidRequest and the message's ID
	Call                        // a request with an id
	Notification                // a request without one
	Response                    // a success or an error
	BadNotification             // a notification that must not run; nobody answers it
	BadResponse                 // a response that is none; it fails the call its ID names
	Bare                        // nothing but version and id: fails the call its ID names, else InvalidRequest with id null
)

// String returns the kind in words.
func (k Kind) String() string {
	words := [...]string{
		Invalid:         "invalid message",
		Call:            "call",
		Notification:    "notification",
		Response:        "response",
		BadNotification: "bad notification",
		BadResponse:     "bad response",
		Bare:            "bare id",
	}
	if int(k) >= len(words) {
		return "unknown kind"
	}
	return words[k]
}

// A Message is one JSON-RPC object, or what stands in its place. Its bytes
// alias the decoded text and are valid until the caller reuses that.
type Message struct {
	Kind  Kind
	Fault Fault // why it is Invalid, BadNotification or BadResponse; else NoFault

	// ID is the call's id; of an Invalid message the id that the error reply
	// must carry, null included; of a Response, BadResponse or Bare the id as
	// received, zero when it is absent, unusable or stands twice.
	ID ID

	// Method is the name without quotes and escapes, nil when the message has
	// no method that is a string. Half of a surrogate pair in it makes bytes
	// that are not UTF-8 and equal no name that is.
	Method []byte

	Text   []byte // all of it
	Params []byte // raw JSON of a Call's or Notification's params, nil when absent
	Result []byte // raw JSON of a success; "null" is a result
	Error  *Error // the error of an error Response; it owns its bytes
}

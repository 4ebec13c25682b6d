package codec

// A Fault says why a message or a batch is refused, for logs and for the reply.
// The zero Fault is none. There is one constant for each reason; where several
// apply, a message has the one that was found first.
type Fault uint8

// The faults. The first group follows the order of the members inside the
// package, which is how a duplicate finds its fault.
const (
	NoFault Fault = iota

	// A member stands twice. RFC 8259 section 4 leaves open which one counts,
	// and ends that differ in that can be played against each other.
	VersionTwice
	IDTwice
	MethodTwice
	ParamsTwice
	ResultTwice
	ErrorTwice
	ErrorCodeTwice
	ErrorMessageTwice
	ErrorDataTwice
	UnknownTwice // a member of the envelope or the error object that JSON-RPC does not define
	NestedTwice  // a member of any other object, by Rules.NoDuplicates

	// An array is refused whole: JSON-RPC 2.0 section 6, and two rules.
	BatchEmpty
	BatchForbidden // by Rules.NoBatch
	BatchTooLong   // by Rules.BatchItems

	// A message of any kind.
	NotObject
	VersionWrong // absent, or anything but the string "2.0"

	// A request: JSON-RPC 2.0 section 4.
	MethodMissing // with no result or error either, or it would be a response
	MethodNotString
	MethodInBatch    // by Rules.NotInBatch
	MethodWithResult // or with error
	ParamsInvalid    // a primitive value, null among them
	ParamsNotObject  // by Rules.ObjectParams

	// An id, of a request or a response.
	IDMissing // of a response; a request without one is a notification
	IDInvalid // true, false, an array or an object
	IDTooLong
	IDRefused // by Rules.NoNullID, IntegerID or IDBits

	// A response: JSON-RPC 2.0 section 5.
	ResultMissing   // both are there and both are null
	ResultWithError // both are there and neither is null
	ResultNotObject // by Rules.ObjectResult
	ErrorNotObject
	ErrorCodeInvalid // absent, or no integer in the range of int64
	ErrorMessageInvalid
)

// String returns the fault as a short sentence that names the member.
func (f Fault) String() string {
	sentences := [...]string{
		NoFault:             "no fault",
		VersionTwice:        "jsonrpc stands twice",
		IDTwice:             "id stands twice",
		MethodTwice:         "method stands twice",
		ParamsTwice:         "params stands twice",
		ResultTwice:         "result stands twice",
		ErrorTwice:          "error stands twice",
		ErrorCodeTwice:      "error.code stands twice",
		ErrorMessageTwice:   "error.message stands twice",
		ErrorDataTwice:      "error.data stands twice",
		UnknownTwice:        "an extra member stands twice",
		NestedTwice:         "a nested object has a member that stands twice",
		BatchEmpty:          "the batch is empty",
		BatchForbidden:      "batches are not accepted",
		BatchTooLong:        "the batch has too many items",
		NotObject:           "the message is not an object",
		VersionWrong:        `jsonrpc is not "2.0"`,
		MethodMissing:       "method is missing",
		MethodNotString:     "method is not a string",
		MethodInBatch:       "method may not stand in a batch",
		MethodWithResult:    "method stands beside result or error",
		IDMissing:           "id is missing",
		IDInvalid:           "id is not a string, a number or null",
		IDTooLong:           "id is longer than 256 bytes",
		IDRefused:           "id is outside the range accepted here",
		ParamsInvalid:       "params is not an array or an object",
		ParamsNotObject:     "params is not an object",
		ResultMissing:       "result and error are both null",
		ResultWithError:     "result stands beside error",
		ResultNotObject:     "result is not an object",
		ErrorNotObject:      "error is not an object",
		ErrorCodeInvalid:    "error.code is not an integer",
		ErrorMessageInvalid: "error.message is not a string",
	}
	if int(f) >= len(sentences) {
		return "unknown fault"
	}
	return sentences[f]
}

package codec

// A Fault says why a message or a batch is refused. The zero Fault is none.
type Fault uint8

// The faults. Those that name a member standing twice follow the order of the
// members inside the package.
const (
	NoFault Fault = iota

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
	NestedTwice  // Rules.NoDuplicates

	BatchEmpty
	BatchForbidden // Rules.NoBatch
	BatchTooLong   // Rules.BatchItems

	NotObject
	VersionWrong
	MethodMissing
	MethodNotString
	MethodInBatch // Rules.NotInBatch
	MethodWithResult
	IDMissing
	IDInvalid
	IDTooLong
	IDRefused // Rules.NoNullID, IntegerID, IDBits
	ParamsInvalid
	ParamsNotObject // Rules.ObjectParams
	ResultMissing
	ResultWithError
	ResultNotObject // Rules.ObjectResult
	ErrorNotObject
	ErrorCodeInvalid
	ErrorMessageInvalid
)

// String returns the fault as a short sentence that names the member.
func (f Fault) String() string {
	switch f {
	case NoFault:
		return "no fault"
	case VersionTwice:
		return "jsonrpc stands twice"
	case IDTwice:
		return "id stands twice"
	case MethodTwice:
		return "method stands twice"
	case ParamsTwice:
		return "params stands twice"
	case ResultTwice:
		return "result stands twice"
	case ErrorTwice:
		return "error stands twice"
	case ErrorCodeTwice:
		return "error.code stands twice"
	case ErrorMessageTwice:
		return "error.message stands twice"
	case ErrorDataTwice:
		return "error.data stands twice"
	case UnknownTwice:
		return "an extra member stands twice"
	case NestedTwice:
		return "a nested object has a member that stands twice"
	case BatchEmpty:
		return "the batch is empty"
	case BatchForbidden:
		return "batches are not accepted"
	case BatchTooLong:
		return "the batch has too many items"
	case NotObject:
		return "the message is not an object"
	case VersionWrong:
		return `jsonrpc is not "2.0"`
	case MethodMissing:
		return "method is missing"
	case MethodNotString:
		return "method is not a string"
	case MethodInBatch:
		return "method may not stand in a batch"
	case MethodWithResult:
		return "method stands beside result or error"
	case IDMissing:
		return "id is missing"
	case IDInvalid:
		return "id is not a string, a number or null"
	case IDTooLong:
		return "id is longer than 256 bytes"
	case IDRefused:
		return "id is outside the range accepted here"
	case ParamsInvalid:
		return "params is not an array or an object"
	case ParamsNotObject:
		return "params is not an object"
	case ResultMissing:
		return "result and error are both null"
	case ResultWithError:
		return "result stands beside error"
	case ResultNotObject:
		return "result is not an object"
	case ErrorNotObject:
		return "error is not an object"
	case ErrorCodeInvalid:
		return "error.code is not an integer"
	case ErrorMessageInvalid:
		return "error.message is not a string"
	}
	return "unknown fault"
}

package codec

// Default bounds, used where a rule is zero or negative.
const (
	defaultDepth      = 1000
	defaultBatchItems = 4096
)

// Rules narrow what an end accepts. The zero value is base JSON-RPC 2.0; each
// boolean names a departure from it. Rules about ids bind requests; a response
// is measured by the ids that were sent. Rules may be shared by any number of
// goroutines as long as nobody changes them.
type Rules struct {
	NoBatch      bool     // arrays are refused whole
	NotInBatch   []string // methods refused inside a batch, such as a handshake
	NoNullID     bool     // a request's id may not be null
	IntegerID    bool     // a request's number id must have an integral value; 1.0 has one
	IDBits       int      // the bits, sign included, a number id must fit as an integer; 0 is any number, over 64 is 64
	ObjectParams bool     // params, when present, must be an object
	ObjectResult bool     // the result of a success must be an object
	NullParams   bool     // "params":null counts as absent
	NoVersion    bool     // the jsonrpc member is left out, and may be missing
	NoDuplicates bool     // duplicate names are refused at every depth
	Depth        int      // containers that may be open at once; 0 is 1000
	BatchItems   int      // messages in one batch; 0 is 4096
}

// depth returns the bound on open containers.
func (r *Rules) depth() int {
	if r.Depth <= 0 {
		return defaultDepth
	}
	return r.Depth
}

// batchItems returns the bound on messages in one batch.
func (r *Rules) batchItems() int {
	if r.BatchItems <= 0 {
		return defaultBatchItems
	}
	return r.BatchItems
}

// keepsFromBatch reports whether method may not stand in a batch.
func (r *Rules) keepsFromBatch(method []byte) bool {
	for _, name := range r.NotInBatch {
		if name == string(method) {
			return true
		}
	}
	return false
}

// allow reports whether a request may carry id, which is valid in base.
func (r *Rules) allow(id ID) bool {
	switch {
	case id.IsNull():
		return !r.NoNullID
	case id.kind != numberID:
		return true
	case r.IDBits > 0:
		// Shifting the unused bits out and back in changes a number that
		// needs one of them.
		n, ok := id.Int64()
		unused := 64 - min(r.IDBits, 64)
		return ok && n<<unused>>unused == n
	case r.IntegerID:
		return parseDecimal(id.literal).integral()
	}
	return true
}

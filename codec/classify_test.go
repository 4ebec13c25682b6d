package codec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/duetrpc/duet/codec"
)

// show renders what decides about a message, so that a table can hold it.
func show(m codec.Message) string {
	var b strings.Builder
	b.WriteString(m.Kind.String())
	if m.Fault != codec.NoFault {
		b.WriteString(": " + m.Fault.String())
	}
	if !m.ID.IsZero() {
		b.WriteString(" id=" + m.ID.String())
	}
	if m.Method != nil {
		b.WriteString(" method=" + string(m.Method))
	}
	if m.Params != nil {
		b.WriteString(" params=" + string(m.Params))
	}
	if m.Result != nil {
		b.WriteString(" result=" + string(m.Result))
	}
	if m.Error != nil {
		b.WriteString(" " + m.Error.Error())
		if m.Error.Data != nil {
			b.WriteString(" data=" + string(m.Error.Data))
		}
	}
	return b.String()
}

// one decodes a text that carries one message.
func one(t *testing.T, text string, rules *codec.Rules) codec.Message {
	t.Helper()
	var e codec.Envelope
	if err := e.Decode([]byte(text), rules); err != nil {
		t.Fatalf("Decode(%s) = %v, want a message", text, err)
	}
	if e.Batch || e.Fault != codec.NoFault || len(e.Messages) != 1 {
		t.Fatalf("Decode(%s) = %+v, want one message", text, e)
	}
	return e.Messages[0]
}

// version writes out the short form of the tables, where v stands for the
// member "jsonrpc":"2.0".
func version(text string) string {
	const long = `"jsonrpc":"2.0"`
	text = strings.ReplaceAll(text, "{v", "{"+long)
	text = strings.ReplaceAll(text, "{ v", "{ "+long)
	text = strings.ReplaceAll(text, ",v}", ","+long+"}")
	return strings.ReplaceAll(text, ",v,", ","+long+",")
}

var classified = []struct{ name, text, want string }{
	// What the four legal kinds are made of.
	{"call", `{v,"method":"m","params":[1],"id":1}`, `call id=1 method=m params=[1]`},
	{"call with object", `{v,"method":"m","params":{"a":1},"id":"x"}`, `call id="x" method=m params={"a":1}`},
	{"call without params", `{v,"method":"m","id":1}`, `call id=1 method=m`},
	{"call with null id", `{v,"method":"m","id":null}`, `call id=null method=m`},
	{"call, members in any order", `{"id":1,"params":[],"method":"m",v}`, `call id=1 method=m params=[]`},
	{"call with space", "{ v ,\n\"method\" : \"m\" , \"params\" : [ 1 ] , \"id\" : 1 } ", `call id=1 method=m params=[ 1 ]`},
	{"call with extra members", `{v,"method":"m","id":1,"trace":{"a":[]},"x":null}`, `call id=1 method=m`},
	{"call with members of other objects", `{v,"method":"m","id":1,"code":1,"message":2,"data":3}`, `call id=1 method=m`},
	{"call with empty method", `{v,"method":"","id":1}`, `call id=1 method=`},
	{"call with escaped method", `{v,"method":"\u0065cho\/\ud83d\ude00\n","id":1}`, "call id=1 method=echo/😀\n"},
	{"call with half a surrogate in its method", `{v,"method":"a\ud800","id":1}`, "call id=1 method=a\xed\xa0\x80"},
	{"notification", `{v,"method":"m","params":{"a":1}}`, `notification method=m params={"a":1}`},
	{"notification without params", `{v,"method":"m"}`, `notification method=m`},
	{"success", `{v,"id":1,"result":{"a":1}}`, `response id=1 result={"a":1}`},
	{"success with null", `{v,"id":1,"result":null}`, `response id=1 result=null`},
	{"success with null id", `{v,"id":null,"result":1}`, `response id=null result=1`},
	{"success with params is still one", `{v,"id":1,"result":1,"params":3}`, `response id=1 result=1`},
	{"error", `{v,"id":1,"error":{"code":5,"message":"m"}}`, `response id=1 jsonrpc error 5: m`},
	{"error with data", `{v,"id":1,"error":{"data":{"k": 1.0},"message":"m","code":-5}}`, `response id=1 jsonrpc error -5: m data={"k": 1.0}`},
	{"error with null data", `{v,"id":1,"error":{"code":5,"message":"m","data":null}}`, `response id=1 jsonrpc error 5: m data=null`},
	{"error with null id", `{v,"id":null,"error":{"code":-32700,"message":"Parse error"}}`, `response id=null jsonrpc error -32700: Parse error`},
	{"error with extra members", `{v,"id":1,"error":{"code":5,"message":"m","method":"x","id":7}}`, `response id=1 jsonrpc error 5: m`},
	{"error with empty message", `{v,"id":1,"error":{"code":0,"message":""}}`, `response id=1 jsonrpc error 0: `},
	{"error with escaped message", `{v,"id":1,"error":{"code":0,"message":"\u0061\n\ud83d\ude00"}}`, "response id=1 jsonrpc error 0: a\n😀"},
	{"error with half a surrogate in its message", `{v,"id":1,"error":{"code":0,"message":"a\ud800\udbffb"}}`, "response id=1 jsonrpc error 0: a\uFFFD\uFFFDb"},
	{"error with half a surrogate after Hangul", `{v,"id":1,"error":{"code":0,"message":"힣\ud800\ud7ff"}}`, "response id=1 jsonrpc error 0: 힣\uFFFD\xed\x9f\xbf"},

	// Exact names.
	{"escaped names", `{"\u006asonrpc":"2.0","\u006dethod":"m","i\u0064":1,"par\u0061ms":[]}`, `call id=1 method=m params=[]`},
	{"Method is not method", `{v,"Method":"m","id":1}`, `invalid message: method is missing id=null`},
	{"METHOD beside method", `{v,"METHOD":"x","method":"m","id":1}`, `call id=1 method=m`},
	{"ID is not id", `{v,"method":"m","ID":1}`, `notification method=m`},
	{"Params is not params", `{v,"method":"m","id":1,"Params":7}`, `call id=1 method=m`},
	{"Result is not result", `{v,"id":1,"Result":7}`, `invalid message: method is missing id=null`},
	{"Code is not code", `{v,"id":1,"error":{"Code":5,"message":"m"}}`, `bad response: error.code is not an integer id=1`},
	{"name with NUL", `{v,"method\u0000":"m","id":1}`, `invalid message: method is missing id=null`},

	// The version.
	{"no version", `{"method":"m","id":4}`, `invalid message: jsonrpc is not "2.0" id=4 method=m`},
	{"version 1.0", `{"jsonrpc":"1.0","method":"m","id":4}`, `invalid message: jsonrpc is not "2.0" id=4 method=m`},
	{"version is a number", `{"jsonrpc":2.0,"method":"m","id":4}`, `invalid message: jsonrpc is not "2.0" id=4 method=m`},
	{"version is null", `{"jsonrpc":null,"method":"m","id":4}`, `invalid message: jsonrpc is not "2.0" id=4 method=m`},
	{"version with space", `{"jsonrpc":"2.0 ","method":"m","id":4}`, `invalid message: jsonrpc is not "2.0" id=4 method=m`},
	{"version escaped", `{"jsonrpc":"2\u002e0","method":"m","id":4}`, `call id=4 method=m`},
	{"JSONRPC", `{"JSONRPC":"2.0","method":"m","id":4}`, `invalid message: jsonrpc is not "2.0" id=4 method=m`},

	// Requests with a fault: own id where it is valid, else null.
	{"method is a number", `{v,"method":1,"id":8}`, `invalid message: method is not a string id=8`},
	{"method is null", `{v,"method":null,"id":8}`, `invalid message: method is not a string id=8`},
	{"method is an array", `{v,"method":["m"],"id":8}`, `invalid message: method is not a string id=8`},
	{"method is no string, no id", `{v,"method":1,"params":"bar"}`, `invalid message: method is not a string id=null`},
	{"method beside result", `{v,"method":"m","id":8,"result":1}`, `invalid message: method stands beside result or error id=8 method=m`},
	{"method beside error", `{v,"method":"m","id":8,"error":{"code":1,"message":""}}`, `invalid message: method stands beside result or error id=8 method=m`},
	{"method beside null result", `{v,"method":"m","id":8,"result":null}`, `invalid message: method stands beside result or error id=8 method=m`},
	{"method that is no string beside result", `{v,"method":1,"id":8,"result":1}`, `invalid message: method is not a string id=8`},
	{"method that is no string beside result, no id", `{v,"method":1,"result":1}`, `invalid message: method is not a string id=null`},
	{"params null", `{v,"method":"m","params":null,"id":8}`, `invalid message: params is not an array or an object id=8 method=m`},
	{"params string", `{v,"method":"m","params":"bar","id":8}`, `invalid message: params is not an array or an object id=8 method=m`},
	{"params number", `{v,"method":"m","params":1,"id":8}`, `invalid message: params is not an array or an object id=8 method=m`},
	{"params true", `{v,"method":"m","params":true,"id":8}`, `invalid message: params is not an array or an object id=8 method=m`},
	{"id true", `{v,"method":"m","id":true}`, `invalid message: id is not a string, a number or null id=null method=m`},
	{"id false", `{v,"method":"m","id":false}`, `invalid message: id is not a string, a number or null id=null method=m`},
	{"id array", `{v,"method":"m","id":[]}`, `invalid message: id is not a string, a number or null id=null method=m`},
	{"id object", `{v,"method":"m","id":{"a":1}}`, `invalid message: id is not a string, a number or null id=null method=m`},
	{"bad id and bad params", `{v,"method":"m","id":{},"params":1}`, `invalid message: params is not an array or an object id=null method=m`},
	{"bad id and bad method", `{v,"method":1,"id":{}}`, `invalid message: method is not a string id=null`},

	// Notifications with a fault: nobody answers them.
	{"notification with bad params", `{v,"method":"m","params":"bar"}`, `bad notification: params is not an array or an object method=m`},
	{"notification with null params", `{v,"method":"m","params":null}`, `bad notification: params is not an array or an object method=m`},
	{"notification with result", `{v,"method":"m","result":null}`, `bad notification: method stands beside result or error method=m`},
	{"notification with error", `{v,"method":"m","error":{}}`, `bad notification: method stands beside result or error method=m`},
	{"notification of version 1.0", `{"jsonrpc":"1.0","method":"m"}`, `bad notification: jsonrpc is not "2.0" method=m`},
	{"notification without version", `{"method":"m"}`, `bad notification: jsonrpc is not "2.0" method=m`},

	// No method, no result, no error.
	{"empty object", `{}`, `invalid message: jsonrpc is not "2.0" id=null`},
	{"version only", `{v}`, `invalid message: method is missing id=null`},
	{"foo", `{"foo":"boo"}`, `invalid message: jsonrpc is not "2.0" id=null`},
	{"params only", `{v,"params":[],"id":5}`, `invalid message: method is missing id=null`},
	{"bare id", `{v,"id":21}`, `bare id id=21`},
	{"bare id, other order", `{"id":"a",v}`, `bare id id="a"`},
	{"bare null id", `{v,"id":null}`, `bare id id=null`},
	{"bare id with an extra member", `{v,"id":21,"x":1}`, `invalid message: method is missing id=null`},
	{"bare id without version", `{"id":21}`, `invalid message: jsonrpc is not "2.0" id=null`},
	{"bare id of version 1.0", `{"jsonrpc":"1.0","id":21}`, `invalid message: jsonrpc is not "2.0" id=null`},
	{"bare id that is none", `{v,"id":true}`, `invalid message: method is missing id=null`},
	{"bare id twice", `{v,"id":21,"id":21}`, `invalid message: id stands twice id=null`},
	{"bare id, version twice", `{v,"id":21,v}`, `invalid message: jsonrpc stands twice id=null`},

	// Not an object.
	{"null", `null`, `invalid message: the message is not an object id=null`},
	{"number", `1`, `invalid message: the message is not an object id=null`},
	{"string", `"method"`, `invalid message: the message is not an object id=null`},
	{"true", ` true `, `invalid message: the message is not an object id=null`},

	// Response candidates with a fault: settled or counted, never answered.
	{"result without id", `{v,"result":1}`, `bad response: id is missing`},
	{"error without id", `{v,"error":{"code":1,"message":"m"}}`, `bad response: id is missing`},
	{"result with id true", `{v,"result":1,"id":true}`, `bad response: id is not a string, a number or null`},
	{"result and error", `{v,"id":1,"result":1,"error":{"code":1,"message":"m"}}`, `bad response: result stands beside error id=1`},
	{"result and broken error", `{v,"id":1,"result":1,"error":"boom"}`, `bad response: result stands beside error id=1`},
	{"result and null error", `{v,"id":1,"result":7,"error":null}`, `response id=1 result=7`},
	{"null result and error", `{v,"id":1,"result":null,"error":{"code":1,"message":"m"}}`, `response id=1 jsonrpc error 1: m`},
	{"null result and broken error", `{v,"id":1,"result":null,"error":"boom"}`, `bad response: error is not an object id=1`},
	{"both null", `{v,"id":1,"result":null,"error":null}`, `bad response: result and error are both null id=1`},
	{"null error alone", `{v,"id":1,"error":null}`, `bad response: error is not an object id=1`},
	{"error is a string", `{v,"id":1,"error":"boom"}`, `bad response: error is not an object id=1`},
	{"error is an array", `{v,"id":1,"error":[{"code":1,"message":"m"}]}`, `bad response: error is not an object id=1`},
	{"error is empty", `{v,"id":1,"error":{}}`, `bad response: error.code is not an integer id=1`},
	{"error without code", `{v,"id":1,"error":{"message":"m"}}`, `bad response: error.code is not an integer id=1`},
	{"error without message", `{v,"id":1,"error":{"code":5}}`, `bad response: error.message is not a string id=1`},
	{"error with message 5", `{v,"id":1,"error":{"code":5,"message":5}}`, `bad response: error.message is not a string id=1`},
	{"error with message null", `{v,"id":1,"error":{"code":5,"message":null}}`, `bad response: error.message is not a string id=1`},
	{"error with code 1.5", `{v,"id":1,"error":{"code":1.5,"message":"m"}}`, `bad response: error.code is not an integer id=1`},
	{"error with code string", `{v,"id":1,"error":{"code":"5","message":"m"}}`, `bad response: error.code is not an integer id=1`},
	{"error with code null", `{v,"id":1,"error":{"code":null,"message":"m"}}`, `bad response: error.code is not an integer id=1`},
	{"error with code 1e400", `{v,"id":1,"error":{"code":1e400,"message":"m"}}`, `bad response: error.code is not an integer id=1`},
	{"error with code 2^63", `{v,"id":1,"error":{"code":9223372036854775808,"message":"m"}}`, `bad response: error.code is not an integer id=1`},
	{"error with code -2^63", `{v,"id":1,"error":{"code":-9223372036854775808,"message":"m"}}`, `response id=1 jsonrpc error -9223372036854775808: m`},
	{"error with code 5.0", `{v,"id":1,"error":{"code":5.0,"message":"m"}}`, `response id=1 jsonrpc error 5: m`},
	{"error with code -3.2e4", `{v,"id":1,"error":{"code":-3.2e4,"message":"m"}}`, `response id=1 jsonrpc error -32000: m`},
	{"response without version", `{"id":1,"result":1}`, `bad response: jsonrpc is not "2.0" id=1`},
	{"response of version 1.0", `{"jsonrpc":"1.0","id":1,"result":1}`, `bad response: jsonrpc is not "2.0" id=1`},
	{"response of version 1.0 with null id", `{"jsonrpc":"1.0","id":null,"result":1}`, `bad response: jsonrpc is not "2.0" id=null`},

	// Duplicates, after unescaping.
	{"version twice", `{v,v,"method":"m","id":1}`, `invalid message: jsonrpc stands twice id=1 method=m`},
	{"method twice", `{v,"method":"x","method":"m","id":15}`, `invalid message: method stands twice id=15 method=x`},
	{"method twice, one escaped", `{v,"method":"x","\u006dethod":"m","id":15}`, `invalid message: method stands twice id=15 method=x`},
	{"method twice, no id", `{v,"method":"x","method":"m"}`, `bad notification: method stands twice method=x`},
	{"method twice, the second a string, no id", `{v,"method":1,"method":"m"}`, `bad notification: method stands twice`},
	{"method twice, no string, no id", `{v,"method":1,"method":2}`, `invalid message: method stands twice id=null`},
	{"params twice", `{v,"method":"m","params":[],"params":[],"id":1}`, `invalid message: params stands twice id=1 method=m`},
	{"params twice, no id", `{v,"method":"m","params":[],"params":[]}`, `bad notification: params stands twice method=m`},
	{"id twice", `{v,"method":"m","id":16,"id":17}`, `invalid message: id stands twice id=null method=m`},
	{"id twice, the same", `{v,"method":"m","id":16,"i\u0064":16}`, `invalid message: id stands twice id=null method=m`},
	{"extra twice", `{v,"method":"m","id":1,"x":1,"y":2,"x":3}`, `invalid message: an extra member stands twice id=1 method=m`},
	{"extra twice, one escaped", `{v,"method":"m","id":1,"x":1,"\u0078":3}`, `invalid message: an extra member stands twice id=1 method=m`},
	{"extra different by half surrogates", `{v,"method":"m","id":1,"\ud800":1,"\ud801":3,"\ufffd":1}`, `call id=1 method=m`},
	{"result twice", `{v,"id":1,"result":1,"result":1}`, `bad response: result stands twice id=1`},
	{"error twice", `{v,"id":1,"error":{"code":1,"message":"m"},"error":null}`, `bad response: error stands twice id=1`},
	{"response id twice", `{v,"id":1,"id":1,"result":1}`, `bad response: id stands twice`},
	{"response extra twice", `{v,"id":1,"result":1,"x":1,"x":1}`, `bad response: an extra member stands twice id=1`},
	{"error code twice", `{v,"id":1,"error":{"code":1,"message":"m","c\u006fde":1}}`, `bad response: error.code stands twice id=1`},
	{"error message twice", `{v,"id":1,"error":{"code":1,"message":"m","message":"m"}}`, `bad response: error.message stands twice id=1`},
	{"error data twice", `{v,"id":1,"error":{"code":1,"message":"m","data":1,"data":1}}`, `bad response: error.data stands twice id=1`},
	{"error extra twice", `{v,"id":1,"error":{"code":1,"message":"m","x":1,"x":1}}`, `bad response: an extra member stands twice id=1`},
	{"the same extra in envelope and error", `{v,"x":1,"id":1,"error":{"code":1,"message":"m","x":1}}`, `response id=1 jsonrpc error 1: m`},
	{"nested duplicates are not ours", `{v,"method":"m","id":1,"params":{"a":1,"a":2}}`, `call id=1 method=m params={"a":1,"a":2}`},
	{"nested names do not meet the envelope's", `{v,"method":"m","id":1,"params":{"method":1,"id":2}}`, `call id=1 method=m params={"method":1,"id":2}`},
}

func TestClassify(t *testing.T) {
	for _, row := range classified {
		t.Run(row.name, func(t *testing.T) {
			text := version(row.text)
			if got := show(one(t, text, nil)); got != row.want {
				t.Errorf("Decode(%s) =\n %s, want\n %s", text, got, row.want)
			}
			// In a batch each message is what it is alone, also after others.
			var e codec.Envelope
			batch := []byte("[" + text + ",{},[" + text + "]," + text + "]")
			if err := e.Decode(batch, nil); err != nil || len(e.Messages) != 4 {
				t.Fatalf("Decode(%s) = %v with %d messages, want 4", batch, err, len(e.Messages))
			}
			for _, i := range []int{0, 3} {
				if got := show(e.Messages[i]); got != row.want {
					t.Errorf("Decode(%s) has at %d\n %s, want\n %s", batch, i, got, row.want)
				}
			}
			if got, want := show(e.Messages[2]), "invalid message: the message is not an object id=null"; got != want {
				t.Errorf("Decode(%s) has at 2 %s, want %s", batch, got, want)
			}
		})
	}
}

// A message with a method never becomes a response and one without never runs,
// whatever else is in it: all subsets of members, each with good and bad values.
func TestClassifySubsets(t *testing.T) {
	values := [][]string{
		{"", `"jsonrpc":"2.0"`, `"jsonrpc":"1.0"`},
		{"", `"id":1`, `"id":null`, `"id":{}`, `"id":1,"id":2`},
		{"", `"method":"m"`, `"method":1`, `"method":"m","method":"n"`},
		{"", `"params":[]`, `"params":1`},
		{"", `"result":1`, `"result":null`},
		{"", `"error":{"code":1,"message":""}`, `"error":null`, `"error":{}`},
	}
	var walk func(members []string)
	walk = func(members []string) {
		if len(members) < len(values) {
			for _, v := range values[len(members)] {
				walk(append(members[:len(members):len(members)], v))
			}
			return
		}
		present := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == "" })
		subset(t, "{"+strings.Join(present, ",")+"}", members[1], members[2], members[4]+members[5])
	}
	walk(nil)
}

// subset checks the message that text carries against what its id, its method
// and its result or error, as they stand in the text, allow it to be.
func subset(t *testing.T, text, id, method, outcome string) {
	t.Helper()
	m := one(t, text, nil)
	var allowed []codec.Kind
	switch {
	case strings.HasPrefix(method, `"method":"m"`) && id == "":
		allowed = []codec.Kind{codec.Notification, codec.BadNotification}
	case method != "":
		allowed = []codec.Kind{codec.Call, codec.Invalid}
	case outcome != "":
		allowed = []codec.Kind{codec.Response, codec.BadResponse}
	default:
		allowed = []codec.Kind{codec.Invalid, codec.Bare}
	}
	if !slices.Contains(allowed, m.Kind) {
		t.Errorf("Decode(%s) = %s, want one of %v", text, show(m), allowed)
	}
	refused := m.Kind == codec.Invalid || m.Kind == codec.BadNotification || m.Kind == codec.BadResponse
	if refused != (m.Fault != codec.NoFault) {
		t.Errorf("Decode(%s) = %s, want a fault exactly where it is refused", text, show(m))
	}
	want := "null"
	if method != "" && id == `"id":1` {
		want = "1"
	}
	if m.Kind == codec.Invalid && m.ID.String() != want {
		t.Errorf("Decode(%s) = %s, want id %s", text, show(m), want)
	}
}

func TestRules(t *testing.T) {
	mcp := codec.Rules{NoNullID: true, IntegerID: true, ObjectParams: true, ObjectResult: true, NoBatch: true}
	const outside = `invalid message: id is outside the range accepted here id=null method=m`
	for _, row := range []struct {
		name  string
		rules codec.Rules
		text  string
		want  string
	}{
		{"null id refused", mcp, `{v,"method":"m","id":null}`, outside},
		{"null id of an error", mcp, `{v,"id":null,"error":{"code":1,"message":"m"}}`, `response id=null jsonrpc error 1: m`},
		{"fraction refused", mcp, `{v,"method":"m","id":1.5}`, outside},
		{"fraction by exponent refused", mcp, `{v,"method":"m","id":15e-1}`, outside},
		{"integral 1.0", mcp, `{v,"method":"m","id":1.0}`, `call id=1.0 method=m`},
		{"integral 10e-1", mcp, `{v,"method":"m","id":10e-1}`, `call id=10e-1 method=m`},
		{"integral 1e400", mcp, `{v,"method":"m","id":1e400}`, `call id=1e400 method=m`},
		{"fraction of a response", mcp, `{v,"id":1.5,"result":{}}`, `response id=1.5 result={}`},
		{"string id", mcp, `{v,"method":"m","id":"1.5"}`, `call id="1.5" method=m`},
		{"refused id of a bad call", mcp, `{v,"method":"m","id":null,"params":1}`, `invalid message: params is not an object id=null method=m`},
		{"array params refused", mcp, `{v,"method":"m","id":1,"params":[]}`, `invalid message: params is not an object id=1 method=m`},
		{"null params refused", mcp, `{v,"method":"m","id":1,"params":null}`, `invalid message: params is not an object id=1 method=m`},
		{"object params", mcp, `{v,"method":"m","id":1,"params":{}}`, `call id=1 method=m params={}`},
		{"array result refused", mcp, `{v,"id":1,"result":[]}`, `bad response: result is not an object id=1`},
		{"null result refused", mcp, `{v,"id":1,"result":null}`, `bad response: result is not an object id=1`},
		{"null result beside an error", mcp, `{v,"id":1,"result":null,"error":{"code":1,"message":"m"}}`, `response id=1 jsonrpc error 1: m`},
		{"32 bits", codec.Rules{IDBits: 32}, `{v,"method":"m","id":2147483647}`, `call id=2147483647 method=m`},
		{"32 bits, least", codec.Rules{IDBits: 32}, `{v,"method":"m","id":-2147483648}`, `call id=-2147483648 method=m`},
		{"32 bits, over", codec.Rules{IDBits: 32}, `{v,"method":"m","id":2147483648}`, outside},
		{"32 bits, under", codec.Rules{IDBits: 32}, `{v,"method":"m","id":-2147483649}`, outside},
		{"32 bits, fraction", codec.Rules{IDBits: 32}, `{v,"method":"m","id":0.5}`, outside},
		{"64 bits", codec.Rules{IntegerID: true, IDBits: 64}, `{v,"method":"m","id":9223372036854775807}`, `call id=9223372036854775807 method=m`},
		{"64 bits, over", codec.Rules{IntegerID: true, IDBits: 64}, `{v,"method":"m","id":9223372036854775808}`, outside},
		{"bits over 64", codec.Rules{IDBits: 99}, `{v,"method":"m","id":-9223372036854775808}`, `call id=-9223372036854775808 method=m`},
		{"bits leave null alone", codec.Rules{IDBits: 32}, `{v,"method":"m","id":null}`, `call id=null method=m`},
		{"null params absent", codec.Rules{NullParams: true}, `{v,"method":"m","id":1,"params":null}`, `call id=1 method=m`},
		{"null params absent in a notification", codec.Rules{NullParams: true, ObjectParams: true}, `{v,"method":"m","params":null}`, `notification method=m`},
		{"null params, others refused", codec.Rules{NullParams: true}, `{v,"method":"m","id":1,"params":false}`, `invalid message: params is not an array or an object id=1 method=m`},
		{"not in batch, alone", codec.Rules{NotInBatch: []string{"m"}}, `{v,"method":"m","id":1}`, `call id=1 method=m`},
		{"no duplicates", codec.Rules{NoDuplicates: true}, `{v,"method":"m","id":1,"params":{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}}`, `call id=1 method=m params={"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}`},
		{"nested duplicate", codec.Rules{NoDuplicates: true}, `{v,"method":"m","id":1,"params":{"a":1,"b":2,"a":1}}`, `invalid message: a nested object has a member that stands twice id=1 method=m`},
		{"nested duplicate, escaped", codec.Rules{NoDuplicates: true}, `{v,"method":"m","id":1,"params":[[{"a":1,"\u0061":1}]]}`, `invalid message: a nested object has a member that stands twice id=1 method=m`},
		{"nested duplicate around others", codec.Rules{NoDuplicates: true}, `{v,"method":"m","id":1,"params":{"a":{"b":{}},"a":{"c":[]}}}`, `invalid message: a nested object has a member that stands twice id=1 method=m`},
		{"nested duplicate in an extra member", codec.Rules{NoDuplicates: true}, `{v,"method":"m","x":{"a":1,"a":1}}`, `bad notification: a nested object has a member that stands twice method=m`},
		{"nested duplicate in a result", codec.Rules{NoDuplicates: true}, `{v,"id":1,"result":{"a":1,"a":1}}`, `bad response: a nested object has a member that stands twice id=1`},
		{"nested duplicate in data", codec.Rules{NoDuplicates: true}, `{v,"id":1,"error":{"code":1,"message":"m","data":{"a":1,"a":1}}}`, `bad response: a nested object has a member that stands twice id=1`},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := version(row.text)
			if got := show(one(t, text, &row.rules)); got != row.want {
				t.Errorf("Decode(%s) =\n %s, want\n %s", text, got, row.want)
			}
		})
	}
}

func TestCheckDuplicates(t *testing.T) {
	text := []byte(`[{"a":{"x":1,"y":[{"x":1}],"x":2}}]`)
	if err := codec.Check(text, nil); err != nil {
		t.Errorf("Check(%s) = %v, want accepted", text, err)
	}
	err := codec.Check(text, &codec.Rules{NoDuplicates: true})
	const want = "codec: an object ends here that has a member twice at byte 32"
	if err == nil || err.Error() != want {
		t.Errorf("Check(%s) = %v, want %s", text, err, want)
	}
}

// Each kind and fault has words of its own.
func TestStrings(t *testing.T) {
	seen := map[string]bool{"": true, "unknown fault": true, "unknown kind": true}
	for f := codec.NoFault; f <= codec.ErrorMessageInvalid; f++ {
		if text := f.String(); seen[text] {
			t.Errorf("Fault(%d).String() = %q, want a sentence of its own", f, text)
		}
		seen[f.String()] = true
	}
	for k := codec.Invalid; k <= codec.Bare; k++ {
		if text := k.String(); seen[text] {
			t.Errorf("Kind(%d).String() = %q, want words of its own", k, text)
		}
		seen[k.String()] = true
	}
	if got := codec.Fault(255).String() + ", " + codec.Kind(255).String(); got != "unknown fault, unknown kind" {
		t.Errorf("String() beyond the last = %q", got)
	}
}

package codec_test

import (
	"fmt"

	"github.com/duetrpc/duet/codec"
)

// A reader keeps one Envelope and decides by the kind of each message.
func ExampleEnvelope_Decode() {
	texts := []string{
		`{"jsonrpc":"2.0","id":1.0,"method":"add","params":[1,2]}`,
		`{"jsonrpc":"2.0","id":2,"method":"add","params":3}`,
		`{"jsonrpc":"2.0","id":7,"result":null}`,
		`{"jsonrpc":"2.0","id":`,
	}
	var e codec.Envelope
	for _, text := range texts {
		if err := e.Decode([]byte(text), nil); err != nil {
			fmt.Println(err)
			continue
		}
		for _, m := range e.Messages {
			switch m.Kind {
			case codec.Call:
				fmt.Printf("%s\n", codec.AppendResult(nil, nil, m.ID, []byte("3")))
			case codec.Invalid:
				refusal := &codec.Error{Code: codec.InvalidRequest, Message: m.Fault.String()}
				fmt.Printf("%s\n", codec.AppendError(nil, nil, m.ID, refusal))
			default:
				fmt.Println(m.Kind, m.ID)
			}
		}
	}
	// Output:
	// {"jsonrpc":"2.0","id":1.0,"result":3}
	// {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"params is not an array or an object"}}
	// response 7
	// codec: unexpected end of text, want a value at byte 22
}

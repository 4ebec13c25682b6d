package peer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
)

type inner struct {
	Deep  map[string][]leafParams `json:"deep"`
	Slash int                     `json:"a/b~c"`
}

type leafParams struct {
	Count uint8  `json:"count"`
	Label string `json:"label"`
}

// manyParams has fields of each kind.
type manyParams struct {
	Text    string          `json:"text,omitzero"`
	Number  int             `json:"number,omitzero"`
	Flag    bool            `json:"flag,omitzero"`
	Inner   inner           `json:"inner,omitzero"`
	List    []string        `json:"list,omitzero"`
	Raw     json.RawMessage `json:"raw,omitzero"`
	When    time.Time       `json:"when,omitzero"`
	Bytes   []byte          `json:"bytes,omitzero"`
	Pointer *float64        `json:"pointer,omitzero"`
	Hidden  string          `json:"-"`
	Plain   string          `json:",omitzero"`
	private string
}

// paramsRegistry has typed methods that return what they got.
func paramsRegistry() *peer.Registry {
	var reg peer.Registry
	give := func(_ context.Context, in manyParams) (string, error) {
		in.private = ""
		b, err := json.Marshal(in)
		return string(b), err
	}
	peer.Method[manyParams, string]("named").Handle(&reg, give)
	peer.Method[manyParams, string]("both").Handle(&reg, give, peer.Positional())
	peer.Method[manyParams, string]("optional").Handle(&reg, give, peer.OptionalParams())
	peer.Method[struct{}, string]("none").Handle(&reg, func(context.Context, struct{}) (string, error) { return "none", nil })
	peer.Method[[]int, int]("list").Handle(&reg, func(_ context.Context, in []int) (int, error) { return len(in), nil })
	return &reg
}

// ask sends a call and returns its answer behind the id.
func ask(raw *peertest.Raw, method, params string) string {
	text := `{"jsonrpc":"2.0","id":1,"method":"` + method + `"`
	if params != "" {
		text += `,"params":` + params
	}
	raw.Send(text + "}")
	return strings.TrimSuffix(strings.TrimPrefix(raw.Receive(), `{"jsonrpc":"2.0","id":1,`), "}")
}

// JSON-RPC 2.0 section 4.2: by position and by name.
func TestTypedParams(t *testing.T) {
	quoted := func(s string) string { b, _ := json.Marshal(s); return `"result":` + string(b) }
	invalid := func(rest string) string { return `"error":{"code":-32602,` + rest + `}` }
	for _, tc := range []struct{ name, method, params, want string }{
		{"named", "named", `{"text":"t","number":2}`, quoted(`{"text":"t","number":2}`)},
		{"unknown members are ignored", "named", `{"text":"t","more":[1]}`, quoted(`{"text":"t"}`)},
		{"names are exact", "named", `{"Text":"t"}`, quoted(`{}`)},
		{"empty", "named", `{}`, quoted(`{}`)},
		{"a field left out of JSON", "named", `{"Hidden":"h","private":"p"}`, quoted(`{}`)},
		{"array not asked for", "named", `["t",2]`, invalid(`"message":"invalid params: want object, got array","data":{"pointer":"","want":"object","got":"array"}`)},
		{"missing", "named", ``, invalid(`"message":"invalid params: missing","data":{"pointer":"","reason":"missing"}`)},
		{"positional", "both", `["t",2,true]`, quoted(`{"text":"t","number":2,"flag":true}`)},
		{"positional with space", "both", `[ "t" , 2 ]`, quoted(`{"text":"t","number":2}`)},
		{"positional all fields", "both", `["t",1,true,{},[],1,"2026-01-02T03:04:05Z","AA==",1.5,"p"]`,
			quoted(`{"text":"t","number":1,"flag":true,"list":[],"raw":1,"when":"2026-01-02T03:04:05Z","bytes":"AA==","pointer":1.5,"Plain":"p"}`)},
		{"positional empty", "both", `[]`, quoted(`{}`)},
		{"both by name", "both", `{"number":2}`, quoted(`{"number":2}`)},
		{"positional missing", "both", ``, invalid(`"message":"invalid params: missing","data":{"pointer":"","reason":"missing"}`)},
		{"too many elements", "both", `[1,2,3,4,5,6,7,8,9,10,11]`, invalid(`"message":"invalid params: /10: at most 10 elements are known","data":{"pointer":"/10","reason":"at most 10 elements are known"}`)},
		{"positional mismatch", "both", `["t","2"]`, invalid(`"message":"invalid params: /1: want number, got string","data":{"pointer":"/1","want":"number","got":"string"}`)},
		{"positional deep mismatch", "both", `["t",2,true,{"deep":{"k":[{"label":5}]}}]`,
			invalid(`"message":"invalid params: /3/deep/k/0/label: want string, got number","data":{"pointer":"/3/deep/k/0/label","want":"string","got":"number"}`)},
		{"optional missing", "optional", ``, quoted(`{}`)},
		{"optional there", "optional", `{"text":"t"}`, quoted(`{"text":"t"}`)},
		{"none missing", "none", ``, `"result":"none"`},
		{"none empty", "none", `{}`, `"result":"none"`},
		{"none with members", "none", `{"x":1}`, `"result":"none"`},
		{"a list", "list", `[1,2,3]`, `"result":3`},
		{"a list by name", "list", `{"a":1}`, invalid(`"message":"invalid params: want array, got object","data":{"pointer":"","want":"array","got":"object"}`)},
		{"an element of a list", "list", `[1,"2"]`, invalid(`"message":"invalid params: /1: want number, got string","data":{"pointer":"/1","want":"number","got":"string"}`)},
		{"name twice", "named", `{"text":"a","text":"b"}`, invalid(`"message":"invalid params: /text: name stands twice","data":{"pointer":"/text","reason":"name stands twice"}`)},
		{"name twice deep", "named", `{"inner":{"a/b~c":1,"a/b~c":2}}`, invalid(`"message":"invalid params: /inner/a~1b~0c: name stands twice","data":{"pointer":"/inner/a~1b~0c","reason":"name stands twice"}`)},
		{"string for number", "named", `{"number":"1"}`, invalid(`"message":"invalid params: /number: want number, got string","data":{"pointer":"/number","want":"number","got":"string"}`)},
		{"boolean for string", "named", `{"text":true}`, invalid(`"message":"invalid params: /text: want string, got boolean","data":{"pointer":"/text","want":"string","got":"boolean"}`)},
		{"array for object", "named", `{"inner":[]}`, invalid(`"message":"invalid params: /inner: want object, got array","data":{"pointer":"/inner","want":"object","got":"array"}`)},
		{"object for array", "named", `{"list":{}}`, invalid(`"message":"invalid params: /list: want array, got object","data":{"pointer":"/list","want":"array","got":"object"}`)},
		{"string for pointer", "named", `{"pointer":"1"}`, invalid(`"message":"invalid params: /pointer: want number, got string","data":{"pointer":"/pointer","want":"number","got":"string"}`)},
		{"deep", "named", `{"inner":{"deep":{"x":[{"count":1},{"count":{}}]}}}`,
			invalid(`"message":"invalid params: /inner/deep/x/1/count: want number, got object","data":{"pointer":"/inner/deep/x/1/count","want":"number","got":"object"}`)},
		{"escaped pointer", "named", `{"inner":{"a/b~c":"x"}}`,
			invalid(`"message":"invalid params: /inner/a~1b~0c: want number, got string","data":{"pointer":"/inner/a~1b~0c","want":"number","got":"string"}`)},
		{"out of range", "named", `{"inner":{"deep":{"x":[{"count":300}]}}}`,
			invalid(`"message":"invalid params: /inner/deep/x/0/count: does not fit","data":{"pointer":"/inner/deep/x/0/count","reason":"does not fit"}`)},
		{"fraction for integer", "named", `{"number":1.5}`, invalid(`"message":"invalid params: /number: does not fit","data":{"pointer":"/number","reason":"does not fit"}`)},
		{"no time", "named", `{"when":"noon"}`, invalid(`"message":"invalid params: /when: does not fit","data":{"pointer":"/when","got":"string","reason":"does not fit"}`)},
		{"number for time", "named", `{"when":1}`, invalid(`"message":"invalid params: /when: does not fit","data":{"pointer":"/when","got":"number","reason":"does not fit"}`)},
		{"no base64", "named", `{"bytes":"?"}`, invalid(`"message":"invalid params: /bytes: does not fit","data":{"pointer":"/bytes","reason":"does not fit"}`)},
		{"lone surrogate", "named", `{"text":"\ud83d"}`, quoted("{\"text\":\"\uFFFD\"}")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _ := peertest.Against(t, &peer.Options{Handler: paramsRegistry()})
				if got := ask(raw, tc.method, tc.params); got != tc.want {
					t.Errorf("%s(%s) =\n%s, want\n%s", tc.method, tc.params, got, tc.want)
				}
			})
		})
	}
}

// goNames are words that only a Go type's name brings into an answer.
var goNames = []string{"peer", "Params", "inner.", "uint8", "int64", "float64", "RawMessage", "time.", "struct", "map[", "[]string", "Go ", "json:"}

// What does not fit is told in the kinds of JSON, whichever decoder found it.
func TestParamsErrorHasNoGoNames(t *testing.T) {
	texts := []string{
		`{"number":"1"}`, `{"text":1}`, `{"flag":"x"}`, `{"inner":[]}`, `{"inner":{"deep":5}}`, `{"list":{}}`, `{"list":[1]}`,
		`{"inner":{"deep":{"x":[{"count":300}]}}}`, `{"inner":{"deep":{"x":[{"count":-1}]}}}`, `{"inner":{"a/b~c":"x"}}`,
		`{"number":1.5}`, `{"number":1e400}`, `{"when":"noon"}`, `{"when":1}`, `{"bytes":"?"}`, `{"bytes":5}`, `{"pointer":"x"}`,
		`["t",[]]`, `[{}]`,
	}
	for _, tc := range []struct {
		name string
		json peer.JSON
	}{{"v2", peer.JSONv2{}}, {"v1", peer.JSONv1{}}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _ := peertest.Against(t, &peer.Options{Handler: paramsRegistry(), JSON: tc.json})
				for _, method := range []string{"named", "both"} {
					for _, params := range texts {
						got := ask(raw, method, params)
						if !strings.HasPrefix(got, `"error":{"code":-32602,`) || !strings.Contains(got, `"pointer":`) {
							t.Errorf("%s(%s) = %s, want -32602 with a pointer", method, params, got)
						}
						for _, name := range goNames {
							if strings.Contains(got, name) {
								t.Errorf("%s(%s) = %s, which names the Go type %q", method, params, got, name)
							}
						}
					}
				}
			})
		})
	}
}

// The same with encoding/json, as far as that can tell.
func TestTypedParamsV1(t *testing.T) {
	for _, tc := range []struct{ name, method, params, want string }{
		{"names in any case", "named", `{"TEXT":"t"}`, `"result":"{\"text\":\"t\"}"`},
		{"positional", "both", `["t",2]`, `"result":"{\"text\":\"t\",\"number\":2}"`},
		{"mismatch", "named", `{"number":"1"}`, `"error":{"code":-32602,"message":"invalid params: /number: want number, got string","data":{"pointer":"/number","want":"number","got":"string"}}`},
		{"boolean", "named", `{"text":true}`, `"error":{"code":-32602,"message":"invalid params: /text: want string, got boolean","data":{"pointer":"/text","want":"string","got":"boolean"}}`},
		{"positional mismatch", "both", `["t","2"]`, `"error":{"code":-32602,"message":"invalid params: /1: want number, got string","data":{"pointer":"/1","want":"number","got":"string"}}`},
		{"out of range", "named", `{"number":1e30}`, `"error":{"code":-32602,"message":"invalid params: /number: does not fit","data":{"pointer":"/number","reason":"does not fit"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, _ := peertest.Against(t, &peer.Options{Handler: paramsRegistry(), JSON: peer.JSONv1{}})
				if got := ask(raw, tc.method, tc.params); got != tc.want {
					t.Errorf("%s(%s) =\n%s, want\n%s", tc.method, tc.params, got, tc.want)
				}
			})
		})
	}
}

// A name with a slash or a tilde is escaped in the pointer (RFC 6901 section 3).
func TestParamsPointerEscapedV1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, _ := peertest.Against(t, &peer.Options{Handler: paramsRegistry(), JSON: peer.JSONv1{}})
		if got := ask(raw, "named", `{"inner":{"a/b~c":"x"}}`); !strings.Contains(got, `"pointer":"/inner/a~1b~0c"`) {
			t.Errorf("named() = %s, want the pointer /inner/a~1b~0c", got)
		}
	})
}

// A name in quotes is a name that encoding/json does not take: it falls back to
// that of the field, and positional params must agree with it.
func TestPositionalQuotedNamesV1(t *testing.T) {
	type quotedNames struct {
		First  int `json:"'one'"`
		Second int `json:"two.three"`
	}
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		peer.Method[quotedNames, int]("m").Handle(&reg, func(_ context.Context, in quotedNames) (int, error) {
			return 10*in.First + in.Second, nil
		}, peer.Positional())
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, JSON: peer.JSONv1{}})
		for _, params := range []string{`{"First":1,"two.three":2}`, `[1,2]`} {
			if got := ask(raw, "m", params); got != `"result":12` {
				t.Errorf("m(%s) = %s, want 12", params, got)
			}
		}
	})
}

// Names in tags may hold what no Go name may.
func TestPositionalRenamed(t *testing.T) {
	type renamed struct {
		First  int `json:"one two"`
		hidden int
		Skip   int `json:"-"`
		Second int `json:"two.three/four,omitempty"`
		Third  int
	}
	for _, tc := range []struct {
		name string
		json peer.JSON
	}{{"v2", nil}, {"v1", peer.JSONv1{}}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reg peer.Registry
				peer.Method[renamed, int]("m").Handle(&reg, func(_ context.Context, in renamed) (int, error) {
					return 1000*in.hidden + 1000*in.Skip + 100*in.First + 10*in.Second + in.Third, nil
				}, peer.Positional())
				raw, _ := peertest.Against(t, &peer.Options{Handler: &reg, JSON: tc.json})
				for _, params := range []string{`{"one two":1,"two.three/four":2,"Third":3}`, `[1,2,3]`} {
					if got := ask(raw, "m", params); got != `"result":123` {
						t.Errorf("m(%s) = %s, want 123", params, got)
					}
				}
			})
		})
	}
}

// Typed params are the handler's own: what comes later into the same buffers
// does not change them, RawMessage members included.
func TestTypedParamsAreOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type holder struct {
			Raw  json.RawMessage   `json:"raw"`
			Text string            `json:"text"`
			Map  map[string]string `json:"map"`
		}
		var kept []holder
		var whole []json.RawMessage
		var reg peer.Registry
		peer.Method[holder, bool]("keep").Handle(&reg, func(_ context.Context, in holder) (bool, error) {
			kept = append(kept, in)
			return true, nil
		}, peer.Positional())
		peer.Notification[json.RawMessage]("whole").Handle(&reg, func(_ context.Context, in json.RawMessage) error {
			whole = append(whole, in)
			return nil
		})
		raw, _ := peertest.Against(t, &peer.Options{Handler: &reg})
		for i := range 100 {
			if params := fmt.Sprintf(`{"raw":{"n":%d},"text":"t%d","map":{"k%d":"v%d"}}`, i, i, i, i); i%2 == 0 {
				ask(raw, "keep", params)
			} else {
				ask(raw, "keep", fmt.Sprintf(`[{"n":%d},"t%d",{"k%d":"v%d"}]`, i, i, i, i))
			}
			raw.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"whole","params":[%d]}`, i))
		}
		synctest.Wait()
		if len(kept) != 100 || len(whole) != 100 {
			t.Fatalf("%d calls and %d notifications ran, want 100 each", len(kept), len(whole))
		}
		for i, in := range kept {
			got := fmt.Sprintf("%s %s %v %s", in.Raw, in.Text, in.Map, whole[i])
			if want := fmt.Sprintf(`{"n":%d} t%d map[k%d:v%d] [%d]`, i, i, i, i, i); got != want {
				t.Errorf("kept %s, want %s", got, want)
			}
		}
	})
}

// A handler may return the params themselves: they are valid until the answer
// is written out, whatever else arrives meanwhile. Results are the caller's own.
func TestEchoAliasesParams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, _ := peertest.Pair(t, nil, &peer.Options{Handler: gateOpen})
		type outcome struct {
			i   int
			got json.RawMessage
		}
		outcomes := make(chan outcome, 200)
		for i := range 200 {
			go func() {
				var out json.RawMessage
				if err := left.Call(t.Context(), "echo", []any{i, strings.Repeat("y", i)}, &out); err != nil {
					t.Errorf("Call() = %v", err)
				}
				outcomes <- outcome{i, out}
			}()
		}
		var all []outcome
		for range 200 {
			all = append(all, <-outcomes)
		}
		for _, o := range all { // after the buffers have been used again
			if want := fmt.Sprintf(`[%d,"%s"]`, o.i, strings.Repeat("y", o.i)); string(o.got) != want {
				t.Errorf("echo = %s, want %s", o.got, want)
			}
		}
	})
}

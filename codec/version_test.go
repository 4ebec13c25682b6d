package codec_test

import (
	"testing"

	"github.com/duetrpc/duet/codec"
)

// With NoVersion the member is neither written nor wanted; where it is there all
// the same it must be right.
func TestNoVersion(t *testing.T) {
	rules := &codec.Rules{NoVersion: true}
	id := codec.NumberID(1)
	for _, row := range []struct{ got, want, show string }{
		{string(codec.AppendCall(nil, rules, 1, "m", []byte(`[1]`))), `{"id":1,"method":"m","params":[1]}`, `call id=1 method=m params=[1]`},
		{string(codec.AppendNotification(nil, rules, "m", nil)), `{"method":"m"}`, `notification method=m`},
		{string(codec.AppendResult(nil, rules, id, nil)), `{"id":1,"result":null}`, `response id=1 result=null`},
		{string(codec.AppendError(nil, rules, id, &codec.Error{Code: 1})), `{"id":1,"error":{"code":1,"message":""}}`, `response id=1 jsonrpc error 1: `},
	} {
		if row.got != row.want {
			t.Errorf("wrote %s, want %s", row.got, row.want)
		}
		if got := show(one(t, row.want, rules)); got != row.show {
			t.Errorf("Decode(%s) = %s, want %s", row.want, got, row.show)
		}
	}
	for text, want := range map[string]codec.Kind{
		`{"jsonrpc":"2.0","id":1,"method":"m"}`:                 codec.Call,
		`{"jsonrpc":"1.0","id":1,"method":"m"}`:                 codec.Invalid,
		`{"jsonrpc":null,"method":"m"}`:                         codec.BadNotification,
		`{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}`: codec.Invalid,
		`{"id":1}`:                 codec.Bare,
		`{"jsonrpc":"2.0","id":1}`: codec.Bare,
		`{"id":1,"x":1}`:           codec.Invalid,
		`{}`:                       codec.Invalid,
	} {
		if m := one(t, text, rules); m.Kind != want {
			t.Errorf("Decode(%s) is a %v, want a %v", text, m.Kind, want)
		}
	}
	for _, text := range []string{`{"id":1,"method":"m"}`, `{"id":1,"result":1}`, `{"id":1}`} {
		if m := one(t, text, nil); m.Fault != codec.VersionWrong {
			t.Errorf("base: Decode(%s) has fault %v, want %v", text, m.Fault, codec.VersionWrong)
		}
	}
}

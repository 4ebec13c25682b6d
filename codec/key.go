package codec

import (
	"bytes"
	"math/big"
	"strconv"
)

// A Key stands for an id where ids are compared or looked up: two keys are
// equal exactly when the ids have the same type and the same value. 1, 1.0 and
// 10e-1 share a key, as do "a" and "\u0061"; 1 and "1" do not. No value passes
// through a float. The zero Key is that of an absent id.
type Key struct {
	kind  idKind
	small int64  // the value of a number that is an int64, and then text is ""
	text  string // of a string: its characters; of any other number: its normal form
}

// Key returns the key of the id, which owns its bytes. Integers of up to 18
// digits cost no allocation.
func (id ID) Key() Key {
	switch id.kind {
	case numberID:
		if n, ok := integer(id.literal); ok {
			return Key{kind: numberID, small: n}
		}
		return Key{kind: numberID, text: parseDecimal(id.literal).String()}
	case stringID:
		return Key{kind: stringID, text: string(unquote(id.literal))}
	}
	return Key{kind: id.kind}
}

// KeyOf returns the key of the id whose literal is a JSON value, as ParseID and Key
// do, and whether it is a string or a number of at most 256 bytes. Integers of up
// to 18 digits cost no allocation.
func KeyOf(literal []byte) (Key, bool) {
	if len(literal) == 0 {
		return Key{}, false
	}
	id, fault := idOf(literal)
	if fault != NoFault || id.kind == nullID {
		return Key{}, false
	}
	return id.Key(), true
}

// A decimal is a JSON number in its one normal form: the significant digits,
// without zeros at either end, times ten to the power of exp. Zero has no
// digits and no sign. Exponents are big because "1e99999999999999999999" is a
// number, too, and not the same as its neighbour.
type decimal struct {
	negative bool
	digits   []byte
	exp      big.Int
}

// parseDecimal expects a valid JSON number, of a length that the caller bounds.
func parseDecimal(literal []byte) *decimal {
	d := new(decimal)
	mantissa := literal
	if i := bytes.IndexAny(literal, "eE"); i >= 0 {
		mantissa = literal[:i]
		d.exp.SetString(string(bytes.TrimPrefix(literal[i+1:], []byte("+"))), 10)
	}
	mantissa, d.negative = bytes.CutPrefix(mantissa, []byte("-"))
	// Both sides of the point become one run of digits. Moving the point to
	// its end, and dropping zeros there, is made good in the exponent.
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	all := append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	d.digits = bytes.TrimRight(all, "0")
	shift := len(all) - len(d.digits) - len(fraction)
	d.exp.Add(&d.exp, big.NewInt(int64(shift)))
	d.digits = bytes.TrimLeft(d.digits, "0")
	if len(d.digits) == 0 {
		return new(decimal)
	}
	return d
}

// integral reports whether the value has no fraction.
func (d *decimal) integral() bool { return d.exp.Sign() >= 0 }

// String returns the normal form as text, one for each value.
func (d *decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + string(d.digits) + "e" + d.exp.String()
}

// integer returns the exact value of a valid JSON number if it is an int64.
// Plain digits, which is what nearly every end sends, take the short way; a
// literal that is longer than an id may be is refused for its cost.
func integer(literal []byte) (int64, bool) {
	if n, ok := plainInteger(literal); ok {
		return n, true
	}
	if len(literal) > maxID {
		return 0, false
	}
	// From ten to the nineteenth on no int64 is left, so no more zeros than
	// that are ever written out, whatever the exponent.
	d := parseDecimal(literal)
	if !d.integral() || !d.exp.IsInt64() || d.exp.Int64() > 18 {
		return 0, false
	}
	digits := d.digits
	if len(digits) == 0 {
		return 0, true
	}
	if d.negative {
		digits = append([]byte("-"), digits...)
	}
	digits = append(digits, bytes.Repeat([]byte("0"), int(d.exp.Int64()))...)
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}

// plainInteger reads up to 18 digits, which cannot overflow, and a sign.
func plainInteger(literal []byte) (int64, bool) {
	digits, negative := bytes.CutPrefix(literal, []byte("-"))
	if len(digits) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

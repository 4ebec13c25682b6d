package main

import (
	"reflect"
	"testing"
)

func TestPlanIsOfTheSeed(t *testing.T) {
	if a, b := digest(1, 8), digest(1, 8); a != b {
		t.Errorf("one seed, two plans: %s and %s", a, b)
	}
	if a, b := digest(1, 8), digest(2, 8); a == b {
		t.Errorf("two seeds, one plan: %s", a)
	}
	// What happens to a connection depends neither on others nor on when it is asked for.
	want := plan(7, 3, 11)
	for connection := range 20 {
		plan(7, 3, connection)
	}
	if got := plan(7, 3, 11); !reflect.DeepEqual(got, want) {
		t.Errorf("connection 11 of client 3 has %v, then %v", want, got)
	}
	if reflect.DeepEqual(plan(7, 2, 11), want) || reflect.DeepEqual(plan(7, 3, 10), want) {
		t.Error("another connection has the same script")
	}
}

func TestPlanHasEveryFault(t *testing.T) {
	seen := make(map[kind]int)
	early := 0
	for i := range 1000 {
		s := plan(1, 0, i)
		seen[s.Cut.Kind]++
		if s.Cut.After < 300 {
			early++
		}
		for _, f := range s.Shapes {
			seen[f.Kind]++
		}
	}
	for _, k := range []kind{
		reset, halfClose, truncate, blackhole, oneWay, limitData, resetPeer, timeout,
		latency, bandwidth, slicer, slowClose,
	} {
		if seen[k] < 20 {
			t.Errorf("%s is %d times among 1,000", k, seen[k])
		}
	}
	if early < 100 {
		t.Errorf("%d of 1,000 cuts are in the handshakes", early)
	}
}

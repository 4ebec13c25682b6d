package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/pending"
)

func TestFlow(t *testing.T) {
	for _, test := range []struct {
		name                     string
		issued                   uint64
		got                      []uint64
		lost, doubled, reordered int
	}{
		{"all", 4, []uint64{0, 1, 2, 3}, 0, 0, 0},
		{"none", 3, nil, 3, 0, 0},
		{"the last one lost", 3, []uint64{0, 1}, 1, 0, 0},
		{"some lost", 5, []uint64{0, 2, 4}, 2, 0, 0},
		{"doubled at once", 3, []uint64{0, 1, 1, 2}, 0, 1, 0},
		{"doubled later", 3, []uint64{0, 1, 2, 0, 1}, 0, 2, 0},
		{"reordered", 4, []uint64{0, 2, 1, 3}, 0, 0, 1},
		{"reordered, and doubled", 3, []uint64{1, 0, 0, 2}, 0, 1, 1},
		{"never sent", 1, []uint64{0, 1}, 0, 1, 0},
		{"of everything", 6, []uint64{0, 3, 3, 2, 5}, 2, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &flow{}
			for range test.issued {
				f.issue()
			}
			for _, n := range test.got {
				f.got(n)
			}
			doubled, reordered := f.faults()
			if f.lost() != test.lost || doubled != test.doubled || reordered != test.reordered {
				t.Errorf("%d lost, %d doubled, %d reordered; want %d, %d, %d",
					f.lost(), doubled, reordered, test.lost, test.doubled, test.reordered)
			}
		})
	}
}

func TestFlowOfNoOrder(t *testing.T) {
	f := &flow{anyOrder: true, issued: 3}
	for _, n := range []uint64{2, 0, 1, 1} {
		f.got(n)
	}
	if doubled, reordered := f.faults(); doubled != 1 || reordered != 0 || f.lost() != 0 {
		t.Errorf("%d lost, %d doubled, %d reordered", f.lost(), doubled, reordered)
	}
}

func TestFlowOfWhatWasNotSent(t *testing.T) {
	f := &flow{anyOrder: true, issued: 4}
	f.got(0)
	f.got(2)
	f.deny(1) // before
	f.deny(3) // what comes
	if doubled, _ := f.faults(); doubled != 0 || f.lost() != 0 {
		t.Errorf("%d lost, %d doubled", f.lost(), doubled)
	}
	f.deny(2) // it has run
	f.got(1)  // it runs after all
	f.got(3)
	if doubled, _ := f.faults(); doubled != 3 {
		t.Errorf("%d doubled, want 3", doubled)
	}
}

// Each of the five figures says that something is wrong, and so does the verdict.
func TestVerdict(t *testing.T) {
	failed := &peer.CallError{Method: "work", Sent: pending.MaybeSent, Err: errors.New("x")}
	for want, spoil := range map[string]func(*tally){
		"lost 0 doubled 0 reordered 0 hung 0 leaked 0": func(*tally) {},
		"lost 1 doubled 0 reordered 0 hung 0 leaked 0": func(t *tally) { t.fail("call", failed) },
		"lost 2 doubled 0 reordered 0 hung 0 leaked 0": func(t *tally) { t.bad("a"); t.gap("b", context.Canceled) },
		"lost 3 doubled 0 reordered 0 hung 0 leaked 0": func(t *tally) { t.settle("flow", &flow{issued: 3}, true) },
		"lost 0 doubled 1 reordered 0 hung 0 leaked 0": func(t *tally) { t.settle("flow", &flow{issued: 3, doubled: 1}, false) },
		"lost 0 doubled 2 reordered 0 hung 0 leaked 0": func(t *tally) {
			t.event(peer.Event{Kind: peer.UnknownResponse})
			t.event(peer.Event{Kind: peer.UnknownResponse})
		},
		"lost 0 doubled 0 reordered 1 hung 0 leaked 0": func(t *tally) { t.settle("flow", &flow{reordered: 1}, true) },
		"lost 0 doubled 0 reordered 0 hung 7 leaked 0": func(t *tally) { t.hang("calls", 7, context.DeadlineExceeded) },
		"lost 0 doubled 0 reordered 0 hung 0 leaked 2": func(t *tally) { t.leave("goroutines", 2) },
	} {
		tally := newTally()
		spoil(tally)
		if got := tally.figures(); !strings.HasSuffix(got, want) {
			t.Errorf("%q does not end with %q", got, want)
		}
		fine := strings.HasPrefix(want, "lost 0 doubled 0 reordered 0 hung 0 leaked 0")
		if tally.good(true) != fine {
			t.Errorf("%s: the verdict is %v", want, tally.good(true))
		}
	}
}

// Without sessions calls may fail, with their state.
func TestVerdictWithoutResume(t *testing.T) {
	typed := newTally()
	typed.fail("call", fmt.Errorf("wrapped: %w", &peer.CallError{Sent: pending.Sent, Err: errors.New("x")}))
	typed.settle("notes", &flow{issued: 2}, true)
	if !typed.good(false) || !strings.Contains(typed.plain(), "failed 1, not sent 0, maybe sent 0, sent 1, untyped 0; notifications lost 2") {
		t.Errorf("%v: %s", typed.good(false), typed.plain())
	}
	untyped := newTally()
	untyped.fail("call", errors.New("x"))
	if untyped.good(false) {
		t.Errorf("%s", untyped.plain())
	}
}

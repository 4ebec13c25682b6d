package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// fits says whether all messages so far belong to o; with whole also that none
// of o is missing.
func (v *conversation) fits(o Alternative, whole bool) bool {
	n, m := len(v.messages), len(o.Expect)
	if n > m || whole && n < m {
		return false
	}
	match := func(i, j int) bool { return o.Expect[j].match(v.messages[i], v.caps) }
	if o.Strict {
		return inOrder(n, m, match)
	}
	return assign(n, m, match)
}

// possible says whether further messages, or none, can lead to an outcome.
func (v *conversation) possible() bool {
	return slices.ContainsFunc(v.outcomes, func(o Alternative) bool { return v.fits(o, false) })
}

// complete says whether an outcome is reached if the connection stays up.
func (v *conversation) complete() bool {
	return slices.ContainsFunc(v.outcomes, func(o Alternative) bool { return o.Close == nil && v.fits(o, true) })
}

// reached returns the number of the first outcome that is reached, or -1.
func (v *conversation) reached() int {
	return slices.IndexFunc(v.outcomes, func(o Alternative) bool {
		// An outcome without a close needs the connection up, the others down.
		if v.ended != (o.Close != nil) || v.ended && !slices.Contains(o.Close, v.code) {
			return false
		}
		return v.fits(o, true)
	})
}

// judge adds what is wrong at the end. It returns the outcome reached, or -1.
func (v *conversation) judge(forbid []*Pattern) int {
	for i, m := range v.messages {
		for _, p := range forbid {
			if p.match(m, v.caps) {
				v.problem("message %d is forbidden by %s", i+1, p)
			}
		}
	}
	n := v.reached()
	if n < 0 {
		v.explain()
	}
	if v.answers > 1 {
		v.problem("the probe was answered %d times", v.answers)
	}
	if !v.ended {
		// A connection that has ended owes neither pongs nor an answer; that it
		// ended is judged by the outcome.
		if v.probed && v.answers == 0 {
			v.problem("the probe was not answered")
		}
		for _, p := range v.pings {
			v.problem("ping %q was not answered by a pong", p)
		}
		if err := v.ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
			v.problem("the case was not over in time")
		} else if err != nil {
			v.problem("stopped: %v", err)
		}
	}
	return n
}

// explain says why no outcome was reached. It compares with the first
// expectation, the one a reader of the case knows.
func (v *conversation) explain() {
	o := v.outcomes[0]
	switch {
	case v.ended && o.Close == nil:
		v.problem("the connection was closed %s, want it to stay up", closeText(v.code))
	case v.ended && !slices.Contains(o.Close, v.code):
		v.problem("the connection was closed %s, want one of %v", closeText(v.code), o.Close)
	case !v.ended && o.Close != nil:
		v.problem("the connection stayed up, want it closed with one of %v", o.Close)
	}
	if !v.fits(o, true) {
		v.compare(o)
	}
	if len(v.outcomes) > 1 {
		v.problem("and no alternative fits")
	}
}

// compare says where the messages differ from those of o.
func (v *conversation) compare(o Alternative) {
	before := len(v.problems)
	match := func(i, j int) bool { return o.Expect[j].match(v.messages[i], v.caps) }
	for i := range v.messages {
		if o.Strict && i < len(o.Expect) && !match(i, i) {
			v.problem("message %d is not the one expected there, %s", i+1, short(o.Expect[i].String()))
			return
		}
		if !slices.ContainsFunc(o.Expect, func(p *Pattern) bool { return p.match(v.messages[i], v.caps) }) {
			v.problem("message %d is not expected", i+1)
		}
	}
	// An expectation that some message meets is not missing, even if that
	// message is needed elsewhere; the count below tells such a case.
	for _, p := range o.Expect {
		if !slices.ContainsFunc(v.messages, func(m message) bool { return p.match(m, v.caps) }) {
			v.problem("never came: %s", short(p.String()))
		}
	}
	if len(v.problems) == before {
		v.problem("%d messages, want %d, one to one", len(v.messages), len(o.Expect))
	}
}

// closeText puts a close code into words.
func closeText(code int) string {
	switch code {
	case noCode:
		return "with a close frame without a code"
	case noClose:
		return "without a close frame"
	}
	return fmt.Sprintf("with %d", code)
}

// report puts the problems into one text, followed by the messages.
func (v *conversation) report() string {
	if len(v.problems) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(strings.Join(v.problems, "; "))
	if len(v.messages) == 0 {
		b.WriteString("; no messages came")
	}
	for i, m := range v.messages {
		fmt.Fprintf(&b, "\n\tmessage %d: %s", i+1, m)
	}
	return b.String()
}

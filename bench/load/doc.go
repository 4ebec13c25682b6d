package load

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Doc is what typed loads carry, and its JSON text what raw loads carry. Every
// call has a Seq of its own.
type Doc struct {
	Seq   int64    `json:"seq"`
	Text  string   `json:"text"`
	Lines []string `json:"lines,omitempty"`
}

// All Seqs have ten digits, so that the text of a Doc has the same size in every
// call, and in raw loads the digits are replaced where they stand.
const (
	firstSeq  = 1_000_000_000
	seqs      = 9_000_000_000 // from firstSeq on
	seqOffset = len(`{"seq":`)
)

// leastSize is that of a Doc without text and lines, and small is up to where it
// has none of the latter. linesRoom is more than any of them takes, so that there is
// always room for the last.
const (
	leastSize = len(`{"seq":1000000000,"text":""}`)
	small     = 512
	linesRoom = 900
)

// NewDoc returns a Doc whose JSON text is size bytes long, to the byte. Small ones
// are a number and a text; from 512 bytes on the text has 64 bytes and the rest
// in pieces of some lines each. It fails for sizes that are too small for a Doc.
func NewDoc(size int) (*Doc, error) {
	if size < leastSize {
		return nil, fmt.Errorf("load: a document of %d bytes is not possible, the least is %d", size, leastSize)
	}
	d := &Doc{Seq: firstSeq}
	if size < small {
		d.Text = filler(size - leastSize)
		return d, nil
	}
	d.Text = filler(64)
	left := size - leastSize - 64 - len(`,"lines":[]`) + len(`,`) // each line has a comma here, the first too
	for i := 0; left > linesRoom; i++ {
		text, err := json.Marshal(lines(i))
		if err != nil {
			return nil, fmt.Errorf("load: lines %d: %w", i+1, err)
		}
		d.Lines = append(d.Lines, lines(i))
		left -= len(text) + len(`,`)
	}
	d.Lines = append(d.Lines, filler(left-len(`,""`)))
	return d, nil
}

// lines is a piece of text, as agents exchange it: source and logs, ASCII for the
// most part, with some text of other scripts and a few escapes. It has no <, > or &,
// which some encoders escape and others do not: a Doc has one size for all of them.
func lines(i int) string {
	samples := [...]string{
		"func (s *session) next(ctx context.Context) (step, error) { return s.plan.pop() }",
		"\tif err := s.tools.call(ctx, \"fs.read\", name); err != nil { return step{}, err }",
		"The build failed in package store: undefined: openSnapshot (3 errors, 1 warning).",
		"Résumé du fichier: 14 fonctions, dont 3 sans tests; voir la liste ci-dessous.",
		"2026-01-17T09:30:12Z INFO request done method=agent.run status=ok duration=1.42s",
		"Next: run the tests again (テスト), and look at what has changed since yesterday.",
		"agent/plan/main.go:118:22: cannot use id (variable of type int64) as string value",
		"I'll read the config first, then change the two call sites and run the tests \u2713",
	}
	var b strings.Builder
	for j, sample := range samples {
		fmt.Fprintf(&b, "%5d  %s\n", i*len(samples)+j+1, sample)
	}
	return b.String()
}

// filler is n bytes of text that JSON does not escape.
func filler(n int) string {
	const words = "read the failing test, find the cause, propose a change; "
	return strings.Repeat(words, n/len(words)+1)[:n]
}

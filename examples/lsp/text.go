package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// Position is a place in a text ("Position"): both count from 0, characters in
// UTF-16 code units.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range ends before End ("Range").
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Change replaces what is in a range ("TextDocumentContentChangeEvent").
type Change struct {
	Range Range  `json:"range"`
	Text  string `json:"text"`
}

// text is one version of a document, of which each half keeps its own.
type text struct {
	version int
	body    string
}

func (t text) digest() Digest {
	sum := sha256.Sum256([]byte(t.body))
	return Digest{Version: t.version, SHA256: hex.EncodeToString(sum[:])}
}

// apply replaces what c says.
func (t *text) apply(c Change) error {
	start, err := t.offset(c.Range.Start)
	if err != nil {
		return err
	}
	end, err := t.offset(c.Range.End)
	if err != nil {
		return err
	}
	if end < start {
		return fmt.Errorf("a range ends before it begins: %v", c.Range)
	}
	t.body = t.body[:start] + c.Text + t.body[end:]
	return nil
}

// offset is where p is, in bytes. A character past the end of its line is that end
// ("Position"). Lines end with "\n" here, and nothing else.
func (t *text) offset(p Position) (int, error) {
	at := 0
	for range p.Line {
		n := strings.IndexByte(t.body[at:], '\n')
		if n < 0 {
			return 0, fmt.Errorf("there is no line %d", p.Line)
		}
		at += n + 1
	}
	character := 0
	for i, r := range t.body[at:] {
		if character >= p.Character || r == '\n' {
			return at + i, nil
		}
		character += utf16.RuneLen(r)
	}
	return len(t.body), nil
}

// position is what offset takes.
func (t *text) position(offset int) Position {
	start := strings.LastIndexByte(t.body[:offset], '\n') + 1
	return Position{Line: strings.Count(t.body[:start], "\n"), Character: units(t.body[start:offset])}
}

// units counts in UTF-16, as all positions do.
func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// words yields the words of t and where they are.
func (t *text) words() iter.Seq2[string, Range] {
	return func(yield func(string, Range) bool) {
		letters := regexp.MustCompile(`\pL+`)
		for n, line := range strings.Split(t.body, "\n") {
			for _, at := range letters.FindAllStringIndex(line, -1) {
				start := Position{n, units(line[:at[0]])}
				end := Position{n, start.Character + units(line[at[0]:at[1]])}
				if !yield(line[at[0]:at[1]], Range{start, end}) {
					return
				}
			}
		}
	}
}

// find lists where word is.
func (t *text) find(word string) (found []Range) {
	for w, at := range t.words() {
		if w == word {
			found = append(found, at)
		}
	}
	return found
}

// wordAt is the word at p, or "".
func (t *text) wordAt(p Position) string {
	for w, at := range t.words() {
		if at.Start.Line == p.Line && at.Start.Character <= p.Character && p.Character < at.End.Character {
			return w
		}
	}
	return ""
}

// changes makes of edits, which all count in one text, changes that can be applied
// one after the other: from the last to the first, none moves those that follow.
func changes(edits []TextEdit) (changes []Change) {
	backward := slices.SortedFunc(slices.Values(edits), func(a, b TextEdit) int {
		return cmp.Or(b.Range.Start.Line-a.Range.Start.Line, b.Range.Start.Character-a.Range.Start.Character)
	})
	for _, e := range backward {
		changes = append(changes, Change{e.Range, e.NewText})
	}
	return changes
}

func (t *text) lines() int { return strings.Count(t.body, "\n") + 1 }

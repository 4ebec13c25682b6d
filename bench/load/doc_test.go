package load_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/duetrpc/duet/bench/load"
)

func TestNewDocSize(t *testing.T) {
	sizes := []int{28, 29, 64, 64 << 10, 1 << 20}
	for size := 500; size < 1500; size += 3 {
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		doc, err := load.NewDoc(size)
		if err != nil {
			t.Fatalf("NewDoc(%d) = %v", size, err)
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatalf("NewDoc(%d): %v", size, err)
		}
		if len(text) != size {
			t.Errorf("NewDoc(%d) has %d bytes of JSON", size, len(text))
		}
	}
}

func TestNewDocTooSmall(t *testing.T) {
	for _, size := range []int{-1, 0, 27} {
		if doc, err := load.NewDoc(size); err == nil {
			t.Errorf("NewDoc(%d) = %+v, want an error", size, doc)
		}
	}
}

func TestNewDocContent(t *testing.T) {
	small, err := load.NewDoc(64)
	if err != nil {
		t.Fatal(err)
	}
	if len(small.Lines) != 0 {
		t.Errorf("NewDoc(64) has %d lines, want none", len(small.Lines))
	}
	for _, size := range []int{1 << 10, 64 << 10} {
		doc, err := load.NewDoc(size)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Text) != 64 {
			t.Errorf("NewDoc(%d).Text has %d bytes, want 64", size, len(doc.Text))
		}
		if mean := (size - 64 - 28) / len(doc.Lines); mean < 300 || mean > 800 {
			t.Errorf("NewDoc(%d) has %d lines, %d bytes each, want about 700", size, len(doc.Lines), mean)
		}
		if !bytes.Contains(text, []byte(`\"`)) || !bytes.Contains(text, []byte(`\t`)) {
			t.Errorf("NewDoc(%d) has no escapes", size)
		}
		if runes := utf8.RuneCount(text); runes == size || runes < size*8/10 {
			t.Errorf("NewDoc(%d) has %d characters, want most of them, and not all, in ASCII", size, runes)
		}
	}
}

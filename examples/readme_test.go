// Package examples holds the test that the programs in the README are the ones
// in this folder.
package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	marked := regexp.MustCompile("(?s)<!-- (examples/[^ ]+\\.go) -->\n```go\n(.*?)```\n").FindAllStringSubmatch(string(readme), -1)
	if all := strings.Count(string(readme), "```go\n"); len(marked) != all || all < 2 {
		t.Errorf("%d of %d programs in README.md name their file; the server and the client at least must", len(marked), all)
	}
	for _, m := range marked {
		file, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(m[1])))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(file) != m[2] {
			t.Errorf("README.md shows another text than %s has:\n%s", m[1], m[2])
		}
	}
}

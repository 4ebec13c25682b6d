// Package layout holds the test of which package may import which: the rooms of
// the project and their doors, as docs/design.md draws them.
package layout

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/duetrpc/duet/"

// room is what a package may import, tests aside.
type room struct {
	ours    []string // packages of this module
	std     []string // of the standard library; nil is all of it
	banned  []string // of the standard library, with everything below
	outside []string // modules
}

// rooms names every package of the module; "/..." covers what is below.
var rooms = map[string]room{
	"codec":   {banned: []string{"net", "sync", "context", "time"}},
	"pending": {std: []string{"context", "errors", "sync", "sync/atomic", "time"}, outside: []string{"github.com/hashicorp/golang-lru/v2"}},
	"wsconn":  {outside: []string{"github.com/coder/websocket"}},
	"peer": {
		ours: []string{"codec", "pending", "wsconn"},
		outside: []string{
			"golang.org/x/sync", "golang.org/x/time/rate", "github.com/cenkalti/backoff/v5", "github.com/go-json-experiment/json",
		},
	},
	"resume": {
		ours:    []string{"peer", "wsconn"},
		outside: []string{"github.com/hashicorp/golang-lru/v2"},
	},
	"stream":            {ours: []string{"codec", "peer", "pending"}},
	"profile":           {ours: []string{"codec", "peer"}, std: []string{"slices"}},
	"peer/peertest/...": {ours: []string{"codec", "peer"}},
	"examples/...": {
		ours:    []string{"codec", "pending", "wsconn", "peer", "profile", "stream", "resume", "examples/internal/screen"},
		outside: []string{"github.com/lmittmann/tint", "golang.org/x/sync"},
	},
	"bench":           {ours: []string{"bench/load", "peer"}},
	"bench/load":      {ours: []string{"peer", "resume", "stream"}, outside: []string{"golang.org/x/sync"}},
	"internal/layout": {},
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return fs.SkipDir
		case d.IsDir() && nested(file):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel("../..", filepath.Dir(file))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		name, r, ok := roomOf(dir)
		if !ok {
			t.Errorf("%s: package %s is not in the table of rooms", file, dir)
			return nil
		}
		seen[name] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if !r.allows(imported) {
				t.Errorf("%s imports %s, which %s may not", file, imported, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		if !seen[name] && name != "internal/layout" {
			t.Errorf("the table of rooms names %s, which has no files", name)
		}
	}
}

// nested reports whether dir is a module of its own.
func nested(dir string) bool {
	mods, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(mods) > 0 && filepath.Clean(dir) != filepath.Clean("../..")
}

func roomOf(dir string) (string, room, bool) {
	if r, ok := rooms[dir]; ok {
		return dir, r, true
	}
	for name, r := range rooms {
		if base, ok := strings.CutSuffix(name, "/..."); ok && (dir == base || strings.HasPrefix(dir, base+"/")) {
			return name, r, true
		}
	}
	return "", room{}, false
}

func (r room) allows(imported string) bool {
	if rest, ok := strings.CutPrefix(imported, module); ok {
		return slices.Contains(r.ours, rest)
	}
	if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
		return slices.ContainsFunc(r.outside, func(m string) bool { return below(imported, m) })
	}
	if slices.ContainsFunc(r.banned, func(b string) bool { return below(imported, b) }) {
		return false
	}
	return r.std == nil || slices.Contains(r.std, imported)
}

func below(imported, base string) bool {
	return imported == base || strings.HasPrefix(imported, base+"/")
}

// TestAllows proves that the check can fail.
func TestAllows(t *testing.T) {
	for _, c := range []struct {
		room, imported string
		want           bool
	}{
		{"codec", "math/bits", true},
		{"codec", "sync/atomic", false},
		{"codec", module + "peer", false},
		{"codec", "github.com/coder/websocket", false},
		{"pending", "fmt", false},
		{"pending", "github.com/hashicorp/golang-lru/v2", true},
		{"pending", "github.com/hashicorp/golang-lru/v2/expirable", true},
		{"wsconn", module + "peer", false},
		{"peer", module + "codec", true},
		{"peer", "github.com/go-json-experiment/json/jsontext", true},
		{"peer", "github.com/lmittmann/tint", false},
		{"profile", module + "wsconn", false},
	} {
		if got := rooms[c.room].allows(c.imported); got != c.want {
			t.Errorf("%s may import %s = %t, want %t", c.room, c.imported, got, c.want)
		}
	}
	if _, _, ok := roomOf(path.Join("util", "strings")); ok {
		t.Error("a package util/strings has a room")
	}
}

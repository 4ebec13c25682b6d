package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/duetrpc/duet/peer"
)

// maxEntries is how many entries fs.list gives at most.
const maxEntries = 500

// tools is the client half: what the agent may do with the folder, and what was
// done. Its methods may be used concurrently.
type tools struct {
	root  *os.Root          // nothing outside of it can be reached
	files int               // how many files the user lets the agent read
	heard func(word string) // shows what the agent says
	talks time.Duration     // how long it is to talk at least

	mu       sync.Mutex
	asked    bool            // the user has been asked
	allowed  int             // files that may still be read
	runs     int             // that were begun
	open     map[int]*served // the runs that have no report yet
	matched  struct{ reports, files, cut, steps, words int }
	problems problems
}

func newTools(root *os.Root, files int) *tools {
	return &tools{root: root, files: files, heard: func(string) {}, open: make(map[int]*served)}
}

// methods registers the tools.
func (t *tools) methods() *peer.Registry {
	var methods peer.Registry
	fsList.Handle(&methods, t.list, peer.Doc("List a folder."))
	fsRead.Handle(&methods, t.read, peer.Doc("Read the beginning of a file."))
	userAllow.Handle(&methods, t.allow, peer.Doc("Ask the user whether files may be read."))
	return &methods
}

// list is the handler of fs.list.
func (t *tools) list(_ context.Context, at Place) (Listing, error) {
	listing := Listing{Path: at.Path}
	if !filepath.IsLocal(at.Path) {
		return listing, outside(at.Path)
	}
	dir, err := t.root.Open(at.Path)
	if err != nil {
		return listing, unreadable(at.Path, err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return listing, unreadable(at.Path, err)
	}
	if listing.More = len(names) > maxEntries; listing.More {
		names = names[:maxEntries]
	}
	for _, name := range names {
		info, err := t.root.Lstat(path.Join(at.Path, name))
		switch {
		case err != nil: // gone since
		case info.IsDir():
			listing.Entries = append(listing.Entries, Entry{Name: name, Dir: true})
		case info.Mode().IsRegular():
			listing.Entries = append(listing.Entries, Entry{Name: name, Bytes: info.Size()})
		}
	}
	return listing, t.note(at.Run, func(s *served) {
		files, bytes := listing.total()
		s.Files, s.Bytes = s.Files+files, s.Bytes+bytes
	})
}

// read is the handler of fs.read.
func (t *tools) read(_ context.Context, at Place) (Content, error) {
	switch {
	case !filepath.IsLocal(at.Path):
		return Content{}, outside(at.Path)
	case !t.take():
		return Content{}, &peer.Error{Code: codeNotAllowed, Message: fmt.Sprintf("the user has not allowed to read %q", at.Path)}
	}
	content, err := t.content(at.Path)
	digest := content.digest()
	if err != nil {
		digest = Digest{Path: at.Path, Refused: refused(err)}
	}
	return content, errors.Join(err, t.note(at.Run, func(s *served) { s.read[at.Path] = digest }))
}

func (t *tools) content(name string) (Content, error) {
	content := Content{Path: name}
	// Only a regular file: to open a pipe would wait for whoever writes to it.
	info, err := t.root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return content, unreadable(name, err)
	}
	file, err := t.root.Open(name)
	if err != nil {
		return content, unreadable(name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, readCap+1))
	if err != nil {
		return content, unreadable(name, err)
	}
	content.Cut = len(data) > readCap
	content.Data = data[:min(len(data), readCap)]
	return content, nil
}

// take uses up the permission to read one file.
func (t *tools) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.allowed == 0 {
		return false
	}
	t.allowed--
	return true
}

// allow is the handler of user.allow. Before the user answers, the agent has to
// say how much there is: a call inside the agent's call inside our call, on one
// connection. Its answer overtakes both of the others.
func (t *tools) allow(ctx context.Context, _ Question) (Permission, error) {
	t.mu.Lock()
	again := t.asked
	t.asked = true
	t.mu.Unlock()
	if again {
		return Permission{}, nil // once is enough
	}
	agent, _ := peer.CallerFrom(ctx)
	if !t.run(ctx, agent, goalCount) {
		return Permission{}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allowed = t.files
	return Permission{Files: t.files}, nil
}

func outside(path string) error {
	return &peer.Error{Code: codeOutside, Message: fmt.Sprintf("%q leads out of the folder", path)}
}

// unreadable names the path as it was asked for, and no other.
func unreadable(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &peer.Error{Code: codeUnreadable, Message: fmt.Sprintf("%q cannot be read: %v", path, err)}
}

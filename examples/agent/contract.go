package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// What the halves have agreed on: the names of the methods with the types of
// their params and results. Each half handles some of them and calls the others.
const (
	agentRun  = stream.Method[Task, string, Report]("agent.run") // handled by the agent, which says words meanwhile
	userAllow = peer.Method[Question, Permission]("user.allow")  // handled by the client, as are the rest
	fsList    = peer.Method[Place, Listing]("fs.list")
	fsRead    = peer.Method[Place, Content]("fs.read")
)

// The errors of this application. An application's codes lie outside the range
// that JSON-RPC 2.0 section 5.1 reserves.
const (
	codeOutside    peer.Code = iota + 1 // the path leads out of the folder
	codeUnreadable                      // there is nothing to read at the path
	codeNotAllowed                      // the user has not allowed it
	codeMixedUp                         // an answer was to another question
)

// refused is the application's code in err, or 0: what a tool refuses is an
// answer as good as any other, and no reason to give up.
func refused(err error) peer.Code {
	var e *peer.Error
	if errors.As(err, &e) && e.Code > 0 {
		return e.Code
	}
	return 0
}

// readCap is how much of a file fs.read gives at most, in bytes.
const readCap = 64 << 10

// The goals of a run.
const (
	goalCount = "count" // count the files of the folder
	goalRead  = "read"  // read its largest files
)

// Task is what the client wants of the agent. Run is a number of the client's
// choice, by which it knows what is asked and told on behalf of the task.
type Task struct {
	Goal  string `json:"goal"`
	Run   int    `json:"run"`
	Talks int    `json:"talks,omitzero"` // it says what it has to say again and again, at least so many milliseconds
}

// Report is the outcome of a task.
type Report struct {
	Steps int      `json:"steps"` // of progress, told before
	Files int      `json:"files"` // that were listed
	Bytes int64    `json:"bytes"` // of them
	Read  []Digest `json:"read"`  // those that were read
	Words int      `json:"words"` // that were said, and
	Said  string   `json:"said"`  // their SHA-256, one after the other
	Run   int      `json:"run"`
}

// Digest says what was read of a file. It is comparable.
type Digest struct {
	Path    string    `json:"path"`
	Bytes   int       `json:"bytes"`
	SHA256  string    `json:"sha256"`
	Cut     bool      `json:"cut,omitzero"`     // Bytes are not all of it
	Refused peer.Code `json:"refused,omitzero"` // why it could not be read
}

// Question is what the agent asks the user.
type Question struct {
	Text string `json:"text"`
	Run  int    `json:"run"`
}

// Permission is the user's answer: how many files may be read, 0 for none.
type Permission struct {
	Files int `json:"files"`
}

// Place is a file or folder below the client's folder, with slashes; "." is the
// folder itself.
type Place struct {
	Path string `json:"path"`
	Run  int    `json:"run"`
}

// Listing is the files and folders at Path, in no order. Others, symbolic links
// for instance, are left out.
type Listing struct {
	Path    string  `json:"path"`
	Entries []Entry `json:"entries"`
	More    bool    `json:"more,omitzero"` // there are more than are listed
}

// Entry is one of a Listing.
type Entry struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes,omitzero"` // of a file
	Dir   bool   `json:"dir,omitzero"`
}

// Content is the beginning of a file.
type Content struct {
	Cut  bool   `json:"cut,omitzero"` // the file goes on after Data
	Path string `json:"path"`
	Data []byte `json:"data"` // at most readCap
}

// digest is taken at both ends: of what was read there, and of what came in here.
func (c Content) digest() Digest {
	sum := sha256.Sum256(c.Data)
	return Digest{Path: c.Path, Bytes: len(c.Data), SHA256: hex.EncodeToString(sum[:]), Cut: c.Cut}
}

func (d Digest) String() string {
	if d.Refused != 0 {
		return fmt.Sprintf("refused with %d", d.Refused)
	}
	cut := ""
	if d.Cut {
		cut = ", cut"
	}
	return fmt.Sprintf("%d bytes%s, sha256 %.12s", d.Bytes, cut, d.SHA256)
}

// total sums up the files of a listing.
func (l Listing) total() (files int, bytes int64) {
	for _, e := range l.Entries {
		if !e.Dir {
			files++
			bytes += e.Bytes
		}
	}
	return files, bytes
}

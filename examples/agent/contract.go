package main

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/duetrpc/duet/codec"
	"github.com/duetrpc/duet/peer"
)

// What the halves have agreed on: the names of the methods with the types of
// their params and results. Each half handles some of them and calls the others.
const (
	agentRun      = peer.Method[Task, Report]("agent.run")         // handled by the agent
	agentProgress = peer.Notification[Progress]("agent.progress")  // handled by the client, as are the rest
	userAllow     = peer.Method[Question, Permission]("user.allow")
	fsList        = peer.Method[Place, Listing]("fs.list")
	fsRead        = peer.Method[Place, Content]("fs.read")
)

// The errors of this application. An application's codes lie outside the range
// that JSON-RPC 2.0 section 5.1 reserves.
const (
	codeOutside    codec.Code = iota + 1 // the path leads out of the folder
	codeUnreadable                       // there is nothing to read at the path
	codeNotAllowed                       // the user has not allowed it
	codeMixedUp                          // an answer was to another question
)

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
	Run  int    `json:"run"`
	Goal string `json:"goal"`
}

// Report is the outcome of a task.
type Report struct {
	Run   int      `json:"run"`
	Steps int      `json:"steps"` // of progress, told before
	Files int      `json:"files"` // that were listed
	Bytes int64    `json:"bytes"` // of them
	Read  []Digest `json:"read"`  // those that were read
}

// Digest says what was read of a file. It is comparable.
type Digest struct {
	Path    string     `json:"path"`
	Bytes   int        `json:"bytes"`
	SHA256  string     `json:"sha256"`
	Refused codec.Code `json:"refused,omitzero"` // why it could not be read
}

// Progress is one step of a run. Steps are numbered from 1.
type Progress struct {
	Run  int    `json:"run"`
	Step int    `json:"step"`
	Note string `json:"note"`
}

// Question is what the agent asks the user.
type Question struct {
	Run  int    `json:"run"`
	Text string `json:"text"`
}

// Permission is the user's answer: how many files may be read, 0 for none.
type Permission struct {
	Files int `json:"files"`
}

// Place is a file or folder below the client's folder, with slashes; "." is the
// folder itself.
type Place struct {
	Run  int    `json:"run"`
	Path string `json:"path"`
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
	Path string `json:"path"`
	Cut  bool   `json:"cut,omitzero"` // the file goes on after Data
	Data []byte `json:"data"`         // at most readCap
}

// digest is taken at both ends: of what was read there, and of what came in here.
func (c Content) digest() Digest {
	sum := sha256.Sum256(c.Data)
	return Digest{Path: c.Path, Bytes: len(c.Data), SHA256: hex.EncodeToString(sum[:])}
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

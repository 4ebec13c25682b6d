package main

import (
	"hash/crc32"
	"math/rand/v2"
	"sync"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// What both ends share. Both ends handle all of it but hello, which is the client's first
// word on each connection.
const (
	work  = peer.Method[task, answer]("work")
	tell  = stream.Method[task, item, answer]("tell")
	note  = peer.Notification[item]("note")
	hello = peer.Notification[struct{}]("hello")
	ready = peer.Method[struct{}, bool]("ready")
)

// item is a numbered text, and its checksum.
type item struct {
	Number uint64 `json:"number"`
	Text   string `json:"text"`
	Sum    uint32 `json:"sum"`
}

// task is what a call asks for.
type task struct {
	item
	Pause int  `json:"pause"` // milliseconds that the handler takes
	Back  bool `json:"back"`  // it is to call back before it answers
	Items int  `json:"items"` // of a stream
}

// answer repeats what was asked.
type answer struct {
	Number uint64 `json:"number"`
	Sum    uint32 `json:"sum"`
}

// intact reports whether the text is what was sent.
func (i item) intact() bool { return crc32.ChecksumIEEE([]byte(i.Text)) == i.Sum }

// author makes what is sent, of sizes that the seed chooses. It may be used concurrently.
type author struct {
	mu   sync.Mutex
	rand *rand.Rand
	text string
}

const largest = 64 << 10

func newAuthor(seed, stream uint64) *author {
	a := &author{rand: rand.New(rand.NewPCG(seed, stream))}
	text := make([]byte, 2*largest)
	for i := range text {
		text[i] = 'a' + byte(a.rand.IntN(26))
	}
	a.text = string(text)
	return a
}

// item writes a text: short as a rule, and now and then a long one.
func (a *author) item(number uint64) item {
	size := a.below(200)
	switch n := a.below(1000); {
	case n < 2:
		size = a.below(largest)
	case n < 50:
		size = a.below(4 << 10)
	}
	from := a.below(largest)
	text := a.text[from : from+size]
	return item{Number: number, Text: text, Sum: crc32.ChecksumIEEE([]byte(text))}
}

// below draws a number.
func (a *author) below(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rand.IntN(n)
}

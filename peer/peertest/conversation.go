package peertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
)

// Conversations plays each file that matches pattern, as a subtest named after
// it, against a peer with the options that opts returns. No file is a failure.
// A file is prose and conversation, line by line:
//
//	# The prose, with the clause or the report the conversation stands for.
//	-> {"jsonrpc":"2.0","id":1,"method":"echo"}
//	<- {"jsonrpc":"2.0","id":1,"result":null}
//
// Lines with -> are messages the peer receives, lines with <- are messages it
// must send, to the byte and in that order. A line ".. 2s" lets that time pass,
// and in it nothing may come that is not expected next; so does the end of the
// file. A line "-- 1008" at the end says that the peer closes the connection
// with that code.
func Conversations(t *testing.T, pattern string, opts func() *peer.Options) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("peertest: no files match %q (%v)", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raw, conn := Against(t, opts())
				for n, line := range strings.Split(string(text), "\n") {
					play(t, raw, conn, n+1, line)
				}
				quiet(t, raw, "the end")
			})
		})
	}
}

func play(t *testing.T, raw *Raw, conn *peer.Conn, n int, line string) {
	t.Helper()
	mark, rest, _ := strings.Cut(line, " ")
	switch mark {
	case "", "#":
	case "->":
		raw.Send(rest)
	case "<-":
		if got := raw.Receive(); got != rest {
			t.Fatalf("line %d: received\n  %s\nwant\n  %s", n, got, rest)
		}
	case "..":
		d, err := time.ParseDuration(rest)
		if err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		time.Sleep(d) // virtual time
		quiet(t, raw, line)
	case "--":
		if err := raw.Ended(); !strings.Contains(err.Error(), rest) {
			t.Fatalf("line %d: the connection ended with %v, want %s", n, err, rest)
		}
		<-conn.Done()
	default:
		t.Fatalf("line %d: %q begins with none of # -> <- .. --", n, line)
	}
}

// quiet fails the test if a message came that nobody asked for.
func quiet(t *testing.T, raw *Raw, where string) {
	t.Helper()
	synctest.Wait()
	if extra := raw.Waiting(); len(extra) > 0 {
		t.Fatalf("at %q came unexpectedly: %q", where, extra)
	}
}

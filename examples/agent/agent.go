package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

// A run stays small whatever the folder: this many folders in it are listed, and
// this many files read at the same time.
const (
	maxFolders = 3
	maxAtOnce  = 8
	maxTalk    = 15 * time.Second
)

// pace is the time between two words, which a person may want to read.
const pace = 15 * time.Millisecond

// newAgent is the agent half: one method. It keeps nothing between runs and
// knows no client but the one that calls.
func newAgent(log *slog.Logger) *peer.Registry {
	var methods peer.Registry
	agentRun.Handle(&methods, func(ctx context.Context, task Task, say func(string) error) (Report, error) {
		began := time.Now()
		client, _ := peer.CallerFrom(ctx) // the connection this call came on
		progress, _ := peer.ProgressFrom(ctx)
		j := &job{client: client, progress: progress, say: say, said: sha256.New(), run: task.Run}
		report, err := j.do(ctx, task)
		var cancel *peer.CancelError
		if errors.As(context.Cause(ctx), &cancel) {
			log.Warn("run stopped, the client has cancelled it", "run", task.Run, "goal", task.Goal, "words", j.words)
			return report, err
		}
		if err != nil {
			log.Warn("run failed", "run", task.Run, "goal", task.Goal, "error", err)
			// What the client's own tools answered may go back to it as it is. Without
			// Forward, what others answered leaves here as a bare internal error.
			return report, peer.Forward(err)
		}
		log.Debug("run done", "run", task.Run, "goal", task.Goal, "took", time.Since(began))
		return report, nil
	}, stream.Handling(peer.Doc("Work on a task, with the caller's own tools.")))
	return &methods
}

// job is one run at work. Its methods may be used concurrently.
type job struct {
	client   peer.Caller
	progress *peer.Reporter // nil if nobody asked
	say      func(word string) error
	until    time.Time // it talks
	run      int

	said  hash.Hash // of the words
	words int

	mu    sync.Mutex
	steps int
}

func (j *job) do(ctx context.Context, task Task) (Report, error) {
	report := Report{Run: j.run}
	var err error
	switch task.Goal {
	case goalCount:
		err = j.count(ctx, &report)
	case goalRead:
		j.until = time.Now().Add(min(time.Duration(task.Talks)*time.Millisecond, maxTalk))
		err = j.read(ctx, &report)
	default:
		err = &peer.Error{Code: peer.InvalidParams, Message: fmt.Sprintf("no goal %q", task.Goal)}
	}
	report.Steps, report.Words, report.Said = j.steps, j.words, hex.EncodeToString(j.said.Sum(nil))
	return report, err
}

// count counts the files of the folder itself.
func (j *job) count(ctx context.Context, report *Report) error {
	listing, err := j.list(ctx, ".")
	if err != nil {
		return err
	}
	report.Files, report.Bytes = listing.total()
	return j.tell("%d files, %d bytes", report.Files, report.Bytes)
}

// read asks for permission, looks around, and reads the largest files, all at
// once. The largest is asked for first; smaller ones may well be here before it.
func (j *job) read(ctx context.Context, report *Report) error {
	if err := j.tell("asking first"); err != nil {
		return err
	}
	question := Question{Run: j.run, Text: "May I read the largest files here?"}
	permission, err := userAllow.Call(ctx, j.client, question)
	if err != nil {
		return err
	}
	files, err := j.look(ctx, report)
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	files = files[:min(len(files), max(permission.Files, 0))]
	report.Read = make([]Digest, len(files))
	whole := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	for i, file := range files {
		group.Go(func() (err error) {
			if report.Read[i], err = j.digest(ctx, file.Name); err != nil {
				return err
			}
			return j.tell("%s: %v", file.Name, report.Read[i])
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return j.speak(whole, report)
}

// speak says what was found, word by word.
func (j *job) speak(ctx context.Context, report *Report) error {
	text := fmt.Sprintf("I have looked at %d files here and below, %d bytes of them. ", report.Files, report.Bytes)
	if len(report.Read) == 0 {
		text += "None of them was mine to read. "
	}
	for i, d := range report.Read[:min(len(report.Read), 10)] {
		text += fmt.Sprintf("Number %d is %s with %d bytes that I have read. ", i+1, strings.Join(strings.Fields(d.Path), "·"), d.Bytes)
	}
	for again := true; again; again = time.Now().Before(j.until) {
		if err := j.recite(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// recite says a text.
func (j *job) recite(ctx context.Context, text string) error {
	for word := range strings.FieldsSeq(text) {
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := j.say(word); err != nil {
			return err
		}
		j.words++
		j.said.Write([]byte(word))
	}
	return nil
}

// look lists the folder and then, all at once, some of those in it. It returns
// the files under their whole paths.
func (j *job) look(ctx context.Context, report *Report) (files []Entry, err error) {
	top, err := j.list(ctx, ".")
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, e := range top.Entries {
		if e.Dir && !strings.HasPrefix(e.Name, ".") {
			folders = append(folders, e.Name)
		}
	}
	slices.Sort(folders)
	folders = folders[:min(len(folders), maxFolders)]
	listings := make([]Listing, len(folders))
	group, below := errgroup.WithContext(ctx)
	for i, folder := range folders {
		group.Go(func() (err error) {
			listings[i], err = j.list(below, folder)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, listing := range append(listings, top) {
		n, bytes := listing.total()
		report.Files, report.Bytes = report.Files+n, report.Bytes+bytes
		for _, e := range listing.Entries {
			if !e.Dir {
				files = append(files, Entry{Name: path.Join(listing.Path, e.Name), Bytes: e.Bytes})
			}
		}
	}
	return files, j.tell("%d files here and below", len(files))
}

// list has the client list a folder. One that it cannot list counts as empty.
func (j *job) list(ctx context.Context, folder string) (Listing, error) {
	listing, err := fsList.Call(ctx, j.client, Place{Run: j.run, Path: folder})
	if refused(err) != 0 {
		return Listing{Path: folder}, nil
	}
	return listing, mixedUp(err, folder, listing.Path)
}

// digest has the client read a file. One that it cannot read is noted as such.
func (j *job) digest(ctx context.Context, file string) (Digest, error) {
	content, err := fsRead.Call(ctx, j.client, Place{Run: j.run, Path: file})
	if code := refused(err); code != 0 {
		return Digest{Path: file, Refused: code}, nil
	}
	return content.digest(), mixedUp(err, file, content.Path)
}

// tell reports the next step of progress. The lock keeps their order.
func (j *job) tell(format string, args ...any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps++
	if j.progress == nil {
		return nil
	}
	return j.progress.Report(peer.Progress{Done: float64(j.steps), Message: fmt.Sprintf(format, args...)})
}

// mixedUp makes sure that an answer is one to the question that was asked.
func mixedUp(err error, asked, answered string) error {
	if err != nil || asked == answered {
		return err
	}
	return &peer.Error{Code: codeMixedUp, Message: fmt.Sprintf("asked for %q, answered with %q", asked, answered)}
}

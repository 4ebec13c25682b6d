package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/duetrpc/duet/peer"
)

// A run stays small whatever the folder: this many folders in it are listed, and
// this many files read at the same time.
const (
	maxFolders = 3
	maxAtOnce  = 8
)

// newAgent is the agent half: one method. It keeps nothing between runs and
// knows no client but the one that calls.
func newAgent(log *slog.Logger) *peer.Registry {
	var methods peer.Registry
	agentRun.Handle(&methods, func(ctx context.Context, task Task) (Report, error) {
		began := time.Now()
		client, _ := peer.CallerFrom(ctx) // the connection this call came on
		j := &job{client: client, run: task.Run}
		report, err := j.do(ctx, task.Goal)
		if err != nil {
			log.Warn("run failed", "run", task.Run, "goal", task.Goal, "error", err)
			// What the client's own tools answered may go back to it as it is. Without
			// Forward, what others answered leaves here as a bare internal error.
			return report, peer.Forward(err)
		}
		log.Debug("run done", "run", task.Run, "goal", task.Goal, "took", time.Since(began))
		return report, nil
	}, peer.Doc("Work on a task, with the caller's own tools."))
	return &methods
}

// job is one run at work. Its methods may be used concurrently.
type job struct {
	client peer.Caller
	run    int

	mu    sync.Mutex
	steps int
}

func (j *job) do(ctx context.Context, goal string) (Report, error) {
	report := Report{Run: j.run}
	var err error
	switch goal {
	case goalCount:
		err = j.count(ctx, &report)
	case goalRead:
		err = j.read(ctx, &report)
	default:
		err = &peer.Error{Code: peer.InvalidParams, Message: fmt.Sprintf("no goal %q", goal)}
	}
	report.Steps = j.steps
	return report, err
}

// count counts the files of the folder itself.
func (j *job) count(ctx context.Context, report *Report) error {
	listing, err := j.list(ctx, ".")
	if err != nil {
		return err
	}
	report.Files, report.Bytes = listing.total()
	return j.tell(ctx, "%d files, %d bytes", report.Files, report.Bytes)
}

// read asks for permission, looks around, and reads the largest files, all at
// once. The largest is asked for first; smaller ones may well be here before it.
func (j *job) read(ctx context.Context, report *Report) error {
	if err := j.tell(ctx, "asking first"); err != nil {
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
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	for i, file := range files {
		group.Go(func() (err error) {
			if report.Read[i], err = j.digest(ctx, file.Name); err != nil {
				return err
			}
			return j.tell(ctx, "%s: %v", file.Name, report.Read[i])
		})
	}
	return group.Wait()
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
	return files, j.tell(ctx, "%d files here and below", len(files))
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

// tell sends the next step of progress. The lock keeps the numbers in the order
// in which the notifications are queued, and they arrive in that order.
func (j *job) tell(ctx context.Context, format string, args ...any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps++
	return agentProgress.Notify(ctx, j.client, Progress{j.steps, fmt.Sprintf(format, args...), j.run})
}

// mixedUp makes sure that an answer is one to the question that was asked.
func mixedUp(err error, asked, answered string) error {
	if err != nil || asked == answered {
		return err
	}
	return &peer.Error{Code: codeMixedUp, Message: fmt.Sprintf("asked for %q, answered with %q", asked, answered)}
}

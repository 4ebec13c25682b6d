package systems_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/duetrpc/duet/bench/load"
	"github.com/duetrpc/duet/bench/peers/systems"
)

// TestEcho has concurrent callers; every answer must be the caller's own.
func TestEcho(t *testing.T) {
	for _, system := range systems.All() {
		t.Run(system.Name, func(t *testing.T) {
			for _, kind := range system.Kinds {
				t.Run(string(kind), func(t *testing.T) {
					try(t, system, kind, 64, 16, 8)
					try(t, system, kind, 64<<10, 3, 1)
				})
			}
		})
	}
}

func try(t *testing.T, system load.System, kind load.Kind, size, callers, each int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pair, err := system.Open(ctx, load.Setup{Wire: new(load.Wire)})
	if err != nil {
		t.Fatalf("Open(%s) = %v", system.Name, err)
	}
	doc, err := load.NewDoc(size)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			for i := range each {
				in := *doc
				in.Seq += int64(caller*each + i)
				if err := call(ctx, pair, kind, &in); err != nil {
					t.Errorf("%s of %d bytes, call %d of caller %d: %v", kind, size, i, caller, err)
					return
				}
			}
		})
	}
	group.Wait()
	if kind == load.Notify {
		for pair.Handled() < uint64(callers*each) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if n := pair.Handled(); n != uint64(callers*each) {
			t.Errorf("Handled() = %d, want %d", n, callers*each)
		}
	}
	if err := pair.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}

func call(ctx context.Context, pair load.Pair, kind load.Kind, in *load.Doc) error {
	switch kind {
	case load.Raw:
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		var got json.RawMessage
		if err := pair.CallRaw(ctx, text, &got); err != nil {
			return err
		}
		if string(got) != string(text) {
			return fmt.Errorf("CallRaw(%.80s) = %.80s, want the same", text, got)
		}
		return nil
	case load.Notify:
		return pair.Notify(ctx, in)
	default:
		var got load.Doc
		if err := pair.Call(ctx, in, &got); err != nil {
			return err
		}
		if got.Seq != in.Seq || got.Text != in.Text || !slices.Equal(got.Lines, in.Lines) {
			return fmt.Errorf("Call(seq %d) = seq %d, %d bytes of text, %d lines, want the same", in.Seq, got.Seq, len(got.Text), len(got.Lines))
		}
		return nil
	}
}

// TestNames: results are found by name, so no two systems may share one.
func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, system := range systems.All() {
		if system.Name == "" || seen[system.Name] {
			t.Errorf("All() has %q twice, or empty", system.Name)
		}
		seen[system.Name] = true
	}
}

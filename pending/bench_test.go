package pending_test

import (
	"context"
	"testing"

	"github.com/duetrpc/duet/pending"
)

// one is a call as package peer makes it: added, written, answered, waited for.
func one(table *pending.Table[string]) {
	s, err := table.Add("m", "")
	if err != nil {
		return
	}
	s.Leave()
	s.Left()
	table.Settle(s.ID, "")
	_, _ = s.Wait(context.Background())
	s.Release()
}

func BenchmarkReleased(b *testing.B) {
	table := pending.New[string](0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		one(table)
	}
}

func BenchmarkReleasedParallel(b *testing.B) {
	table := pending.New[string](0, 1024)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one(table)
		}
	})
}

// BenchmarkBehindOne has a call that stays open, at whose place the others pass.
func BenchmarkBehindOne(b *testing.B) {
	table := pending.New[string](0, 1024)
	if _, err := table.Add("open", ""); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		one(table)
	}
}

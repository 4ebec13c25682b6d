// Command stream is a call whose handler sends words while it runs, and says how far
// it is. Interrupt it: the handler stops.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/stream"
)

type task struct {
	Text string `json:"text"`
}

const say = stream.Method[task, string, int]("agent.say")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	var reg peer.Registry
	say.Handle(&reg, func(ctx context.Context, in task, send func(string) error) (int, error) {
		words := strings.Fields(in.Text)
		progress, asked := peer.ProgressFrom(ctx)
		for i, word := range words {
			if err := send(word); err != nil { // waits while the caller is behind
				return i, err // the caller has gone, or given up
			}
			if asked {
				_ = progress.Report(peer.Progress{Done: float64(i + 1), Total: float64(len(words))})
			}
			time.Sleep(100 * time.Millisecond)
		}
		return len(words), nil
	})
	a, b := peer.Pipe() // or a Server and Dial
	server := peer.New(a, &peer.Options{Handler: &reg, Logger: slog.Default()})
	client := peer.New(b, nil)

	share := 0.0
	s := say.Call(ctx, client, task{"in order, none lost, at the pace of who reads"},
		stream.Calling(peer.OnProgress(func(p peer.Progress) { share = p.Done / p.Total })))
	for word, err := range s.All() { // leaving this loop cancels the call
		if err != nil {
			break
		}
		fmt.Println(word)
	}
	n, err := s.Result()
	fmt.Printf("%d words, %v, %.0f %% done\n", n, err, 100*share)

	_ = client.Close()
	<-server.Done() // the handler, too, has returned
}

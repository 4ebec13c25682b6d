package resume_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duetrpc/duet/peer"
	"github.com/duetrpc/duet/peer/peertest"
	"github.com/duetrpc/duet/wsconn"
)

// TestConversation plays the conversation of docs/resume.md against this package.
func TestConversation(t *testing.T) {
	page, err := os.ReadFile("../docs/resume.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```conversation\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	var lines []string
	for _, b := range blocks {
		lines = append(lines, strings.Split(strings.TrimSpace(b[1]), "\n")...)
	}
	if len(lines) < 30 {
		t.Fatalf("only %d lines of conversation", len(lines))
	}
	synctest.Test(t, func(t *testing.T) {
		var reg peer.Registry
		type upTo struct {
			To int `json:"to"`
		}
		peer.Method[upTo, int]("count").Handle(&reg, func(ctx context.Context, in upTo) (int, error) {
			c, _ := peer.CallerFrom(ctx)
			for i := range in.To {
				time.Sleep(time.Second)
				if err := c.Notify(ctx, "number", []int{i + 1}); err != nil {
					return 0, err
				}
			}
			return in.To, nil
		})
		thanked := false
		reg.HandleNotification("thanks", peer.HandlerFunc(func(context.Context, *peer.Request) (any, error) { thanked = true; return nil, nil }))
		p := &player{t: t, w: newWorld(t, nil, &peer.Options{Handler: &reg}), sockets: map[string]*peertest.Raw{}, ids: map[string]string{}}
		for _, line := range lines {
			p.play(line)
		}
		if !thanked {
			t.Error("nobody was thanked")
		}
		for _, c := range p.w.allConns() {
			_ = c.Close()
			<-c.Done()
		}
	})
}

// player is the dialling end of a conversation.
type player struct {
	t       *testing.T
	w       *world
	sockets map[string]*peertest.Raw
	ids     map[string]string // those of the page, as they are here
}

var anID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

func (p *player) play(line string) {
	p.t.Helper()
	who, what, _ := strings.Cut(line, " ")
	verb, text, _ := strings.Cut(what, " ")
	text = anID.ReplaceAllStringFunc(text, func(id string) string {
		if known, ok := p.ids[id]; ok {
			return known
		}
		return id
	})
	switch socket := p.sockets[who]; {
	case who == "wait":
		d, err := time.ParseDuration(what)
		if err != nil {
			p.t.Fatal(err)
		}
		time.Sleep(d)
	case verb == "dialled":
		p.sockets[who] = p.w.raw()
	case verb == "lost":
		p.w.cut()
	case verb == ">" && strings.HasPrefix(text, "close "):
		socket.Close(&wsconn.CloseError{Code: 1000})
		synctest.Wait()
	case verb == ">":
		socket.Send(text)
		synctest.Wait()
	case verb == "<" && text == "close 1000": // the answer to one, which a pipe does not show
		if err := p.w.conn().Err(); err != nil {
			p.t.Errorf("%s: the other end ended with %v", line, err)
		}
	case verb == "<" && strings.HasPrefix(text, "close "):
		if text[len("close "):] == "4101" {
			closed(p.t, socket, 4101)
		} else {
			closed(p.t, socket, 4102)
		}
	case verb == "<" && strings.HasPrefix(text, "opened "):
		got := socket.Receive()
		p.ids[anID.FindString(text)] = anID.FindString(got)
		if want := anID.ReplaceAllString(text, "ID"); anID.ReplaceAllString(got, "ID") != want {
			p.t.Errorf("%s: got %q", line, got)
		}
	case verb == "<":
		socket.Want(text)
	default:
		p.t.Fatalf("what does this mean? %q", line)
	}
}

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// ErrEcho is what Run's error wraps if the pair answered with something else than
// what it was sent.
var ErrEcho = errors.New("wrong echo")

// magazine is what all shots of a run are made of.
type magazine struct {
	pair Pair
	kind Kind
	doc  *Doc
	text json.RawMessage // of doc
}

func newMagazine(p Pair, l Load) (*magazine, error) {
	doc, err := NewDoc(l.Size)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("load: document of %d bytes: %w", l.Size, err)
	}
	return &magazine{pair: p, kind: l.Kind, doc: doc, text: text}, nil
}

// shot sends one document again and again, with a new Seq each time. It is used
// by one goroutine and allocates nothing of its own, so that what is counted is
// the system's.
type shot struct {
	magazine *magazine
	next     int64 // added to firstSeq
	in, out  Doc
	text     json.RawMessage
	reply    json.RawMessage
}

// shot returns the shot of a worker. Workers start a million Seqs apart; that two
// of them may meet later does no harm, since Seq only tells a worker's own calls
// from each other.
func (m *magazine) shot(worker int) *shot {
	s := &shot{magazine: m, next: int64(worker) * 1_000_000, in: *m.doc}
	if m.kind == Raw {
		s.text = bytes.Clone(m.text)
	}
	return s
}

// fire makes one call, or sends one notification or item, and checks the answer.
func (s *shot) fire(ctx context.Context) error {
	s.in.Seq = firstSeq + s.next%seqs
	s.next++
	switch s.magazine.kind {
	case Raw:
		// Ten digits over ten digits: the text keeps its size and its place.
		strconv.AppendInt(s.text[seqOffset:seqOffset], s.in.Seq, 10)
		if err := s.magazine.pair.CallRaw(ctx, s.text, &s.reply); err != nil {
			return err
		}
		return checkText(s.text, s.reply)
	case Notify:
		return s.magazine.pair.Notify(ctx, &s.in)
	case Stream:
		return s.magazine.pair.(Streamer).Send(ctx, &s.in)
	default:
		s.out = Doc{} // decoding into a used one would merge, and pass for an answer
		if err := s.magazine.pair.Call(ctx, &s.in, &s.out); err != nil {
			return err
		}
		return checkDoc(&s.in, &s.out)
	}
}

// checkDoc and checkText look at what differs from call to call and at sizes.
// Comparing everything would be measured, too.
func checkDoc(in, out *Doc) error {
	if out.Seq != in.Seq || len(out.Text) != len(in.Text) || len(out.Lines) != len(in.Lines) {
		return fmt.Errorf("%w: seq %d, %d bytes of text, %d lines; want %d, %d, %d", ErrEcho,
			out.Seq, len(out.Text), len(out.Lines), in.Seq, len(in.Text), len(in.Lines))
	}
	return nil
}

func checkText(in, out json.RawMessage) error {
	const end = 64
	switch {
	case len(out) != len(in):
		return fmt.Errorf("%w: %d bytes, want %d", ErrEcho, len(out), len(in))
	case !bytes.Equal(out[:min(end, len(out))], in[:min(end, len(in))]):
		return fmt.Errorf("%w: begins with %q, want %q", ErrEcho, out[:min(end, len(out))], in[:min(end, len(in))])
	case !bytes.Equal(out[max(0, len(out)-end):], in[max(0, len(in)-end):]):
		return fmt.Errorf("%w: ends with %q, want %q", ErrEcho, out[max(0, len(out)-end):], in[max(0, len(in)-end):])
	}
	return nil
}

package main

import (
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// chunk is a piece of what passes, as toxiproxy has it.
type chunk = stream.StreamChunk

// toxic is the toxic of f. Those that draw numbers draw them from a source that has no
// seed, so none is left anything to draw.
func toxic(f fault) toxics.Toxic {
	switch f.Kind {
	case latency:
		return &toxics.LatencyToxic{Latency: f.Param}
	case bandwidth:
		return &toxics.BandwidthToxic{Rate: f.Param}
	case slicer:
		return &toxics.SlicerToxic{AverageSize: int(f.Param)}
	case slowClose:
		return &toxics.SlowCloseToxic{Delay: f.Param}
	case limitData:
		return &toxics.LimitDataToxic{Bytes: f.Param}
	case resetPeer:
		return &toxics.ResetToxic{Timeout: f.Param}
	case timeout:
		return &toxics.TimeoutToxic{Timeout: f.Param}
	}
	return nil // the relay's own
}

// through has what comes from in pass a toxic. What comes out ends when in does or, where
// the toxic is a cut, when that is done; then in is the caller's to read to its end.
func through(t toxics.Toxic, in <-chan *chunk) <-chan *chunk {
	if t, ok := t.(toxics.BufferedToxic); ok {
		in = buffered(in, t.GetBufferSize())
	}
	out := make(chan *chunk)
	stub := toxics.NewToxicStub(in, out)
	if t, ok := t.(toxics.StatefulToxic); ok {
		stub.State = t.NewState()
	}
	go stub.Run(&toxics.ToxicWrapper{Toxic: t, Toxicity: 1})
	return out
}

// buffered is in with room for so many chunks on the way.
func buffered(in <-chan *chunk, room int) <-chan *chunk {
	out := make(chan *chunk, room)
	go func() {
		defer close(out)
		for c := range in {
			out <- c
		}
	}()
	return out
}

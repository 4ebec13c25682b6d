package main

import (
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/duetrpc/duet/bench/peers/systems"
)

// inFlight is where the lines of the picture have their points.
var inFlight = []int{1, 4, 16, 64, 256, 1024, 4096}

// curve is a line of the picture: the best of some systems at each point.
type curve struct {
	name    string
	systems []string
	load    string // of which inFlight is put into
	colour  color.Color
	width   vg.Length
	dashes  []vg.Length
	points  plotter.XYs
}

// curves are drawn in this order, so that duet's is on top.
func curves() []curve {
	thin := func(name string, from ...string) curve {
		return curve{name: name, systems: from, load: typed64, colour: muted, width: 1}
	}
	return []curve{
		thin("gRPC, unary calls", systems.GRPCUnaryName),
		thin("net/http POST", systems.PostName),
		thin("x/exp/jsonrpc2", systems.ExpName),
		thin("go-ethereum/rpc", systems.EthereumName),
		thin("creachadair/jrpc2", systems.JRPC2Name),
		thin("sourcegraph/jsonrpc2", systems.SourcegraphName),
		{name: "raw WebSocket, coalesced", systems: []string{systems.CoalescedName}, load: raw64, colour: faint, width: 1.2, dashes: []vg.Length{5, 3}},
		{name: "raw WebSocket", systems: []string{systems.CoderName}, load: raw64, colour: faint, width: 1.2, dashes: []vg.Length{1.5, 2.5}},
		{name: "gRPC, one stream", systems: []string{systems.GRPCStreamName}, load: typed64, colour: green, width: 1.8},
		{name: "go.lsp.dev/jsonrpc2", systems: []string{systems.LSPInlineName, systems.LSPAsyncName}, load: typed64, colour: blue, width: 1.8},
		{name: "duet, raw params", systems: []string{systems.DuetName}, load: raw64, colour: vermilion, width: 1.4, dashes: []vg.Length{5, 3}},
		{name: "duet", systems: []string{systems.DuetName}, load: typed64, colour: vermilion, width: 3.2},
	}
}

// throughput is calls a second against calls in flight.
func throughput(r *report) (*plot.Plot, layout, bool) {
	var drawn []curve
	var top float64
	for _, c := range curves() {
		for _, n := range inFlight {
			t := term{systems: c.systems, load: fmt.Sprintf(c.load, n), pick: perSecond}
			if rate, ok := t.figure(r); ok {
				c.points = append(c.points, plotter.XY{X: float64(n), Y: rate})
				top = max(top, rate)
			}
		}
		if len(c.points) > 1 {
			drawn = append(drawn, c)
		}
	}
	if len(drawn) == 0 {
		return nil, layout{}, false
	}
	p := bare("calls in flight")
	p.X.Scale = plot.LogScale{}
	p.X.Min, p.X.Max = float64(inFlight[0]), float64(inFlight[len(inFlight)-1])
	p.X.Tick.Marker = plot.ConstantTicks(nil)
	var at []plot.Tick
	for _, n := range inFlight {
		at = append(at, plot.Tick{Value: float64(n), Label: thousands(float64(n))})
	}
	p.X.Tick.Marker = plot.ConstantTicks(at)
	step := niceStep(top / 5)
	p.Y.Min, p.Y.Max = 0, step*math.Ceil(top/step)
	var ticks []plot.Tick
	for v := 0.0; v <= p.Y.Max; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: kilo(v)})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Add(rules{ticks})
	for _, c := range drawn {
		p.Add(c)
	}
	p.Add(names(drawn))
	return p, layout{
		width: 660, height: 420, right: 118,
		title:   "Calls a second over one connection",
		lead:    "64 bytes of JSON in and out, a cancellable context each; the raw WebSockets carry the same bytes without JSON",
		caption: r.caption(),
	}, true
}

// niceStep is the next 1, 2 or 5 times a power of ten.
func niceStep(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, times := range []float64{1, 2, 5} {
		if times*unit >= v {
			return times * unit
		}
	}
	return 10 * unit
}

func kilo(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v/1000, 'f', -1, 64) + "k"
}

// rules are faint lines across the plot.
type rules struct{ at []plot.Tick }

func (u rules) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, tick := range u.at {
		c.StrokeLine2(draw.LineStyle{Color: hairline, Width: 0.8}, c.Min.X, y(tick.Value), c.Max.X, y(tick.Value))
	}
}

// Plot draws the line and its points.
func (v curve) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var line []vg.Point
	for _, at := range v.points {
		line = append(line, vg.Point{X: x(at.X), Y: y(at.Y)})
	}
	c.StrokeLines(draw.LineStyle{Color: v.colour, Width: v.width, Dashes: v.dashes}, line)
	for _, at := range line {
		c.DrawGlyph(draw.GlyphStyle{Color: v.colour, Radius: 1 + v.width*0.7, Shape: draw.CircleGlyph{}}, at)
	}
}

// names writes the name of each curve beside its end. Those that end at the same
// place are moved apart.
type names []curve

func (n names) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	ends := make(map[float64][]curve)
	for _, v := range n {
		end := v.points[len(v.points)-1].X
		ends[end] = append(ends[end], v)
	}
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		curves := ends[end]
		slices.SortFunc(curves, func(a, b curve) int {
			return cmp.Compare(a.points[len(a.points)-1].Y, b.points[len(b.points)-1].Y)
		})
		var at []vg.Length
		for _, v := range curves {
			at = append(at, y(v.points[len(v.points)-1].Y))
		}
		at = apart(at, 11.5, c.Min.Y+4)
		for i, v := range curves {
			size := vg.Length(9)
			emphasis := v.width > 3
			if emphasis {
				size = 13
			}
			s := style(size, v.colour, emphasis)
			if v.colour == muted {
				s.Color = faint
			}
			s.YAlign = draw.YCenter
			c.FillText(s, vg.Point{X: x(end) + 8, Y: at[i]}, v.name)
		}
	}
}

// apart moves sorted places away from each other, as little as it can, and none
// below the least.
func apart(at []vg.Length, room, least vg.Length) []vg.Length {
	type block struct {
		center vg.Length
		count  int
	}
	var blocks []block
	for _, y := range at {
		b := block{y, 1}
		for {
			b.center = max(b.center, least+room*vg.Length(b.count-1)/2)
			if len(blocks) == 0 {
				break
			}
			last := blocks[len(blocks)-1]
			if last.center+room*vg.Length(last.count+b.count)/2 <= b.center {
				break
			}
			all := last.count + b.count
			b = block{(last.center*vg.Length(last.count) + b.center*vg.Length(b.count)) / vg.Length(all), all}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	var out []vg.Length
	for _, b := range blocks {
		for i := range b.count {
			out = append(out, b.center+room*(vg.Length(i)-vg.Length(b.count-1)/2))
		}
	}
	return out
}

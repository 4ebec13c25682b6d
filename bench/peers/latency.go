package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/duetrpc/duet/bench/peers/systems"
)

// nameRoom is the width of the names beside the rows, in points.
const nameRoom = 160

// tails is a row of the picture: three percentiles of a system, in microseconds.
type tails struct {
	system         string
	p50, p99, p999 float64
}

// latency is the percentiles of calls, 256 of them in flight.
func latency(r *report) (*plot.Plot, layout, bool) {
	var rows []tails
	least, most := math.Inf(1), 0.0
	for _, system := range systems.All() {
		for _, load := range []string{typed64, raw64} {
			key := system.Name + " " + fmt.Sprintf(load, 256)
			a, ok := r.figure(key, p50)
			if !ok || a.median <= 0 {
				continue
			}
			b, _ := r.figure(key, p99)
			c, _ := r.figure(key, p999)
			rows = append(rows, tails{system.Name, a.median, b.median, c.median})
			least, most = min(least, a.median), max(most, c.median)
			break // a system with typed calls is shown with those
		}
	}
	if len(rows) == 0 {
		return nil, layout{}, false
	}
	slices.SortFunc(rows, func(a, b tails) int { return cmp.Compare(b.p99, a.p99) })

	p := bare("time from call to answer")
	p.X.Scale = plot.LogScale{}
	p.X.Min, p.X.Max = least/1.3, most*1.3
	var at []plot.Tick
	for unit := 1.0; unit < 1e9; unit *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if v := times * unit; v >= p.X.Min && v <= p.X.Max {
				at = append(at, plot.Tick{Value: v, Label: duration(v)})
			}
		}
	}
	p.X.Tick.Marker = plot.ConstantTicks(at)
	p.Y.Min, p.Y.Max = -0.6, float64(len(rows))-0.4
	p.Y.Tick.Marker = plot.ConstantTicks(nil)
	p.Add(columnsAt(at), dots(rows))
	return p, layout{
		width: 660, height: vg.Length(110 + 22*len(rows)), left: nameRoom,
		title:   "Latency with 256 calls in flight",
		lead:    "64 bytes of JSON, closed loop; the raw ones carry the same bytes without JSON",
		caption: r.caption(),
	}, true
}

func duration(micros float64) string {
	if micros >= 1000 {
		return fmt.Sprintf("%g ms", micros/1000)
	}
	return fmt.Sprintf("%g µs", micros)
}

// columnsAt are faint lines from the axis up.
type columnsAt []plot.Tick

func (a columnsAt) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, tick := range a {
		c.StrokeLine2(draw.LineStyle{Color: hairline, Width: 0.8}, x(tick.Value), c.Min.Y, x(tick.Value), c.Max.Y)
	}
}

// dots draws the rows, the first at the bottom.
type dots []tails

func (d dots) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	legend(c)
	for i, row := range d {
		colour, at := colourOf(row.system), y(float64(i))
		duet := row.system == systems.DuetName
		width, radius, size, ink := vg.Length(1.4), vg.Length(3.2), vg.Length(9), ink
		if duet {
			width, radius, size, ink = 3, 4.6, 11, vermilion
		}
		c.StrokeLine2(draw.LineStyle{Color: colour, Width: width}, x(row.p50), at, x(row.p999), at)
		for j, micros := range []float64{row.p50, row.p99, row.p999} {
			marks[j].draw(c, vg.Point{X: x(micros), Y: at}, colour, radius)
		}
		name := style(size, ink, duet)
		name.YAlign = draw.YCenter
		c.FillText(name, vg.Point{X: edge, Y: at}, row.system) // not right-aligned: fonts differ

		value := style(8, faint, false)
		if duet {
			value = style(8, vermilion, true)
		}
		value.XAlign = draw.XCenter
		c.FillText(value, vg.Point{X: x(row.p99), Y: at + radius + 2}, brief(row.p99))
	}
}

// mark is how a percentile is drawn.
type mark struct {
	name  string
	shape draw.GlyphDrawer
}

var marks = [3]mark{{"p50", draw.RingGlyph{}}, {"p99", draw.CircleGlyph{}}, {"p99.9", draw.TriangleGlyph{}}}

// draw draws the mark on white, so that a line ends at it.
func (m mark) draw(c draw.Canvas, at vg.Point, colour color.Color, radius vg.Length) {
	if _, ring := m.shape.(draw.RingGlyph); ring {
		c.DrawGlyph(draw.GlyphStyle{Color: white, Radius: radius, Shape: draw.CircleGlyph{}}, at)
	}
	c.DrawGlyph(draw.GlyphStyle{Color: colour, Radius: radius, Shape: m.shape}, at)
}

// legend tells the marks, above the right end of the plot.
func legend(c draw.Canvas) {
	at := vg.Point{X: c.Max.X - 118, Y: c.Max.Y + 8}
	c.Max.Y += 20 // marks outside of it are not drawn
	for _, m := range marks {
		m.draw(c, at, faint, 3.2)
		name := style(9, faint, false)
		name.YAlign = draw.YCenter
		c.FillText(name, vg.Point{X: at.X + 7, Y: at.Y}, m.name)
		at.X += 40
	}
}

// brief is a time with two or three digits.
func brief(micros float64) string {
	switch {
	case micros >= 9_950:
		return fmt.Sprintf("%.0f ms", micros/1000)
	case micros >= 1000:
		return fmt.Sprintf("%.1f ms", micros/1000)
	default:
		return fmt.Sprintf("%.0f µs", micros)
	}
}

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/duetrpc/duet/bench/peers/systems"
)

// Colours that those with any kind of colour vision tell apart (Okabe and Ito's),
// and greys for what only gives the scale.
var (
	white     = color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
	ink       = color.RGBA{R: 0x22, G: 0x26, B: 0x2b, A: 0xff}
	faint     = color.RGBA{R: 0x6a, G: 0x71, B: 0x7a, A: 0xff}
	hairline  = color.RGBA{R: 0xe4, G: 0xe7, B: 0xea, A: 0xff}
	muted     = color.RGBA{R: 0xa3, G: 0xab, B: 0xb4, A: 0xff}
	vermilion = color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}
	blue      = color.RGBA{G: 0x72, B: 0xb2, A: 0xff}
	green     = color.RGBA{G: 0x9e, B: 0x73, A: 0xff}
)

// colourOf is what a system is drawn in, in every picture.
func colourOf(system string) color.Color {
	switch system {
	case systems.DuetName:
		return vermilion
	case systems.LSPInlineName, systems.LSPAsyncName:
		return blue
	case systems.GRPCStreamName:
		return green
	case systems.CoderName, systems.CoalescedName, systems.GorillaName, systems.TCPName:
		return faint
	}
	return muted
}

// pictures draws what the report has something for, into a folder.
func pictures(r *report, folder string) error {
	for name, picture := range map[string]func(*report) (*plot.Plot, layout, bool){
		"throughput.svg": throughput,
		"latency.svg":    latency,
	} {
		p, l, ok := picture(r)
		if !ok {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), render(p, l), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// layout is the room around a plot.
type layout struct {
	width, height vg.Length
	left, right   vg.Length // beside the plot, for names
	title, lead   string
	caption       string
}

const edge = 14 // points around everything

// render makes an SVG with a title above the plot and a caption below it, on white,
// so that it can be read on a dark page, too.
func render(p *plot.Plot, l layout) []byte {
	canvas := vgsvg.NewWith(vgsvg.UseWH(l.width, l.height))
	c := draw.New(canvas)
	c.SetColor(white)
	c.Fill(c.Rectangle.Path())
	c.FillText(style(15, ink, true), vg.Point{X: edge, Y: l.height - edge - 12}, l.title)
	c.FillText(style(10, faint, false), vg.Point{X: edge, Y: l.height - edge - 28}, l.lead)
	c.FillText(style(8, faint, false), vg.Point{X: edge, Y: edge - 2}, l.caption)
	p.Draw(draw.Crop(c, edge+l.left, -edge-l.right, edge+14, -edge-44))

	var b bytes.Buffer
	_, _ = canvas.WriteTo(&b) // a Buffer takes everything
	// The fonts the canvas measures with are not everywhere; these are as wide.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arimo,Helvetica,Arial,sans-serif"))
}

// style is a text in the one typeface of all pictures.
func style(size vg.Length, c color.Color, bold bool) draw.TextStyle {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = 3 // WeightBold of golang.org/x/image/font
	}
	return draw.TextStyle{Color: c, Font: f, Handler: plot.DefaultTextHandler}
}

// bare is a plot without lines but the axis below.
func bare(x string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil // none: a transparent one has no colour that SVG knows
	p.X.Label.Text = x
	p.X.Label.TextStyle = alike(p.X.Label.TextStyle, 9, faint)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Tick.Label = alike(axis.Tick.Label, 9, faint)
		axis.Tick.Length = 0
		axis.Padding = 4
		axis.LineStyle.Width = 0
	}
	return p
}

// alike is a style as aligned as another, in our typeface.
func alike(to draw.TextStyle, size vg.Length, c color.Color) draw.TextStyle {
	s := style(size, c, false)
	s.XAlign, s.YAlign, s.Rotation = to.XAlign, to.YAlign, to.Rotation
	return s
}

// caption tells the machine and the day.
func (r *report) caption() string {
	e := r.Environment
	machine := fmt.Sprintf("%d cores", e.Cores)
	if e.CPU != "" {
		machine = e.CPU + ", " + machine
	}
	figures := fmt.Sprintf("medians of %d rounds", r.Rounds)
	if r.Rounds == 1 {
		figures = "one round"
	}
	return fmt.Sprintf("%s, %s, %s/%s; one connection over loopback, both ends in one process; %s, %s",
		machine, e.Go, e.OS, e.Arch, figures, r.Date.Format(time.DateOnly))
}

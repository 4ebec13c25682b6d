package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const columns = 120

// progress says what is measured and how long it will take: in one line that is
// drawn again where out is a terminal, else in a line for each group and round.
type progress struct {
	out      io.Writer
	terminal bool
	time     time.Duration

	left  time.Duration // by plan
	gone  time.Duration // by plan
	began time.Time
	last  string
}

func newProgress(out *os.File, groups []group, rounds int, d time.Duration) *progress {
	p := &progress{out: out, time: d, began: time.Now()}
	if info, err := out.Stat(); err == nil {
		p.terminal = info.Mode()&os.ModeCharDevice != 0
	}
	for _, g := range groups {
		for _, c := range g.cells {
			for round := range rounds {
				if c.fits(round + 1) {
					p.left += c.cost(d)
				}
			}
		}
	}
	return p
}

// step tells of a cell that begins.
func (p *progress) step(g group, c cell, round, rounds int) {
	line := fmt.Sprintf("%s left, round %d/%d, %s", p.remaining(), round, rounds, g.title)
	if p.terminal {
		p.draw(line + ": " + c.system)
		return
	}
	if where := fmt.Sprint(g.title, round); where != p.last {
		p.last = where
		fmt.Fprintln(p.out, cut(line))
	}
}

// remaining corrects the plan by how it went so far.
func (p *progress) remaining() string {
	left := p.left
	if p.gone > 5*time.Second {
		left = time.Duration(float64(left) * float64(time.Since(p.began)) / float64(p.gone))
	}
	left = left.Round(time.Second)
	return fmt.Sprintf("%2dm%02ds", left/time.Minute, left%time.Minute/time.Second)
}

func (p *progress) done(c cell) {
	p.left -= c.cost(p.time)
	p.gone += c.cost(p.time)
}

// say writes a line that stays.
func (p *progress) say(line string) {
	if p.terminal {
		p.draw("")
	}
	fmt.Fprintln(p.out, line)
}

// end takes the line away.
func (p *progress) end() {
	if p.terminal {
		p.draw("")
	}
}

func (p *progress) draw(line string) {
	line = cut(line)
	fmt.Fprintf(p.out, "\r%s%s\r%s", line, strings.Repeat(" ", columns-1-len([]rune(line))), line)
}

// cut leaves what fits a line.
func cut(line string) string {
	if r := []rune(line); len(r) >= columns {
		return string(r[:columns-1])
	}
	return line
}

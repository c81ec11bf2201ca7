package chart

import (
	"fmt"
	"iter"
	"strings"
)

// Line joins points in their order.
type Line struct {
	Name string // shown in the legend and as the line's title; empty: no entry
	Style
	X, Y []float64
	// Low and High are an interval around each point, drawn as a band; both or none.
	Low, High []float64
	// Whiskers draws each point's interval as a bar. Default: a band.
	Whiskers bool
	// XLow and XHigh are an interval of X around each point, drawn as a bar; both or none.
	XLow, XHigh []float64
	// Titles are the titles of the points. A browser shows them under the pointer. Give all or none.
	Titles []string
	// Scattered points are not joined.
	Scattered bool
}

// lines draws grid and ticks on c. It draws the lines on content, which lies above the frame.
func (p Panel) lines(c, content *canvas, f frame) {
	var xs, ys []float64
	for _, l := range p.Lines {
		l.check()
		xs, ys = append(xs, l.X...), append(ys, l.Y...)
		xs, ys = append(append(xs, l.XLow...), l.XHigh...), append(append(ys, l.Low...), l.High...)
	}
	for _, m := range p.Marks {
		xs = append(xs, m.X)
	}
	x, y := p.X.of(xs), p.Y.of(ys)
	p.marks(content, &f, x)
	bottom := float64(f.top + f.height)
	c.printf(`<g stroke="%s" stroke-width="0.5">`+"\n", ink)
	for _, t := range y.ticks {
		c.printf(`<path d="M%s %sh%d" stroke-opacity="0.5"/>`+"\n", px(float64(f.left)), px(f.y(y, t.value)), f.width)
	}
	for _, t := range x.ticks {
		c.printf(`<path d="M%s %sv4"/>`+"\n", px(f.x(x, t.value)), px(bottom))
	}
	c.printf("</g>\n")
	for _, t := range y.ticks {
		c.text(float64(f.left-6), f.y(y, t.value)+4, "end", "", t.label)
	}
	for _, t := range x.ticks {
		c.text(f.x(x, t.value), bottom+17, "middle", "", t.label)
	}
	for _, l := range p.Lines {
		l.draw(content, f, x, y)
	}
}

func (l Line) check() {
	n := len(l.X)
	if len(l.Y) != n || len(l.Low) != len(l.High) || l.Low != nil && len(l.Low) != n {
		panic(fmt.Sprintf("chart: line %q has %d X, %d Y, %d Low and %d High", l.Name, n, len(l.Y), len(l.Low), len(l.High)))
	}
	if len(l.XLow) != len(l.XHigh) || l.XLow != nil && len(l.XLow) != n || l.Titles != nil && len(l.Titles) != n {
		panic(fmt.Sprintf("chart: line %q has %d X, %d XLow, %d XHigh and %d titles", l.Name, n, len(l.XLow), len(l.XHigh), len(l.Titles)))
	}
}

// draw draws a band or whiskers, the line and its markers.
func (l Line) draw(c *canvas, f frame, x, y ruler) {
	at := func(i int, v float64) string { return px(f.x(x, l.X[i])) + " " + px(f.y(y, v)) }
	shown := func(i int) bool { return x.shows(l.X[i]) && y.shows(l.Y[i]) }
	interval := func(i int) bool { return shown(i) && y.shows(l.Low[i]) && y.shows(l.High[i]) }
	c.printf(`<g fill="%s" stroke="%s">`, l.colour(), l.colour())
	if l.Name != "" {
		c.printf(`<title>%s</title>`, escape(l.Name))
	}
	c.printf("\n")
	if l.Low != nil && !l.Whiskers {
		c.printf(`<path stroke="none" fill-opacity="0.2" d="`)
		for from, to := range runs(len(l.X), interval) {
			var back strings.Builder
			for i := from; i < to; i++ {
				c.printf("%c%s", "ML"[min(i-from, 1)], at(i, l.High[i]))
				back.WriteString("L" + at(from+to-1-i, l.Low[from+to-1-i]))
			}
			c.printf("%sz", back.String())
		}
		c.printf("\"/>\n")
	}
	if !l.Scattered {
		c.printf(`<path fill="none" stroke-width="1.3"%s d="`, l.dashed())
		for from, to := range runs(len(l.X), shown) {
			for i := from; i < to; i++ {
				c.printf("%c%s", "ML"[min(i-from, 1)], at(i, l.Y[i]))
			}
		}
		c.printf("\"/>\n")
	}
	if l.Low != nil && l.Whiskers {
		c.printf(`<path fill="none" d="`)
		for i := range l.X {
			if interval(i) {
				c.printf("M%sV%s", at(i, l.Low[i]), px(f.y(y, l.High[i])))
			}
		}
		c.printf("\"/>\n")
	}
	if l.XLow != nil {
		c.printf(`<path fill="none" stroke-opacity="0.5" d="`)
		for i := range l.X {
			if shown(i) && x.shows(l.XLow[i]) && x.shows(l.XHigh[i]) {
				c.printf("M%s %sH%s", px(f.x(x, l.XLow[i])), px(f.y(y, l.Y[i])), px(f.x(x, l.XHigh[i])))
			}
		}
		c.printf("\"/>\n")
	}
	switch {
	case l.marker() == "":
	case l.Titles != nil:
		for i := range l.X {
			if shown(i) {
				c.printf(`<path %s d="M%s%s"><title>%s</title></path>`+"\n", l.filled(), at(i, l.Y[i]), l.marker(), escape(l.Titles[i]))
			}
		}
	default:
		opacity := ""
		if l.Scattered {
			opacity = ` fill-opacity="0.6"`
		}
		c.printf(`<path %s%s d="`, l.filled(), opacity)
		for i := range l.X {
			if shown(i) {
				c.printf("M%s%s", at(i, l.Y[i]), l.marker())
			}
		}
		c.printf("\"/>\n")
	}
	c.printf("</g>\n")
}

// runs yields the consecutive ranges of 0 to n for which shown is true, as from and to.
func runs(n int, shown func(i int) bool) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for from := 0; from < n; from++ {
			to := from
			for to < n && shown(to) {
				to++
			}
			if to > from && !yield(from, to) {
				return
			}
			from = to
		}
	}
}

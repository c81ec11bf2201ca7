package paper

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
)

// panel is a plot: lines of points, or points alone.
type panel struct {
	title, xLabel, yLabel string
	log                   bool // the x axis
	scattered             bool // no lines between the points
	lines                 []line
}

type line struct {
	name string
	look look
	dots []dot
}

// dot is a point; its error bar reaches as far up as down, and NaN is none.
type dot struct{ x, y, err float64 }

// Sizes in pixels.
const (
	plotWidth, plotHeight = 350, 210
	fontSize              = 12
)

// ink is that of text, axes and grid: grey that can be read on light and dark.
const ink = "#7a828c"

// canvas is SVG text.
type canvas struct{ bytes.Buffer }

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(c, format, args...) }

// px is a coordinate: a tenth of a pixel is fine enough.
func px(v float64) string {
	text := fmt.Sprintf("%.1f", v)
	if text == "-0.0" {
		return "0.0"
	}
	return text
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}

func (c *canvas) text(x, y float64, anchor, more, text string) {
	c.printf(`<text x="%s" y="%s" text-anchor="%s"%s>%s</text>`+"\n", px(x), px(y), anchor, more, escape(text))
}

// axes of a panel. One is always on the y axis: it is what all is relative to.
func (p panel) axes() (x, y axis) {
	var xs []float64
	ys := []float64{1}
	for _, l := range p.lines {
		for _, d := range l.dots {
			xs, ys = append(xs, d.x), append(ys, d.y)
			if !math.IsNaN(d.err) {
				ys = append(ys, d.y-d.err, d.y+d.err)
			}
		}
	}
	if p.log {
		return logarithmic(xs), linear(ys)
	}
	return linear(xs), linear(ys)
}

// draw puts the panel's plot at a place, its labels around it.
func (c *canvas) draw(p panel, left, top float64) {
	const inset = 8 // between the frame and the outermost points
	xs, ys := p.axes()
	x := func(v float64) float64 { return left + inset + xs.place(v)*(plotWidth-2*inset) }
	y := func(v float64) float64 { return top + plotHeight - inset - ys.place(v)*(plotHeight-2*inset) }
	c.text(left, top-8, "start", ` font-weight="bold"`, p.title)
	c.text(left+plotWidth/2, top+plotHeight+34, "middle", "", p.xLabel)
	if p.yLabel != "" {
		at := fmt.Sprintf(` transform="rotate(-90 %s %s)"`, px(left-44), px(top+plotHeight/2))
		c.text(left-44, top+plotHeight/2, "middle", at, p.yLabel)
	}
	if p.lines == nil {
		c.text(left+plotWidth/2, top+plotHeight/2, "middle", "", "not measured")
	} else {
		c.printf(`<g stroke="%s" stroke-width="0.5">`+"\n", ink)
		for _, t := range ys.ticks {
			c.printf(`<path d="M%s %sh%d" stroke-opacity="0.5"/>`+"\n", px(left), px(y(t.value)), plotWidth)
		}
		for _, t := range xs.ticks {
			c.printf(`<path d="M%s %sv4"/>`+"\n", px(x(t.value)), px(top+plotHeight))
		}
		c.printf("</g>\n")
		for _, t := range ys.ticks {
			c.text(left-6, y(t.value)+4, "end", "", t.label)
		}
		for _, t := range xs.ticks {
			c.text(x(t.value), top+plotHeight+17, "middle", "", t.label)
		}
	}
	c.printf(`<rect x="%s" y="%s" width="%d" height="%d" fill="none" stroke="%s"/>`+"\n", px(left), px(top), plotWidth, plotHeight, ink)
	for _, l := range p.lines {
		c.line(l, p.scattered, x, y)
	}
}

// line draws points, their error bars and, unless they are scattered, what joins them.
func (c *canvas) line(l line, scattered bool, x, y func(float64) float64) {
	c.printf(`<g fill="%s" stroke="%s"><title>%s</title>`+"\n", l.look.colour, l.look.colour, escape(l.name))
	if !scattered {
		c.printf(`<path fill="none" stroke-width="1.3"%s d="`, dashed(l.look.dashes))
		for i, d := range l.dots {
			c.printf("%c%s %s", "ML"[min(i, 1)], px(x(d.x)), px(y(d.y)))
		}
		c.printf("\"/>\n")
		c.printf(`<path fill="none" d="`)
		for _, d := range l.dots {
			if !math.IsNaN(d.err) {
				c.printf("M%s %sV%s", px(x(d.x)), px(y(d.y-d.err)), px(y(d.y+d.err)))
			}
		}
		c.printf("\"/>\n")
	}
	opacity := ""
	if scattered {
		opacity = ` fill-opacity="0.6"`
	}
	c.printf(`<path stroke="none"%s d="`, opacity)
	for _, d := range l.dots {
		c.printf("M%s %s%s", px(x(d.x)), px(y(d.y)), l.look.marker)
	}
	c.printf("\"/>\n</g>\n")
}

func dashed(pattern string) string {
	if pattern == "" {
		return ""
	}
	return fmt.Sprintf(` stroke-dasharray="%s"`, pattern)
}

package chart

import (
	"fmt"
	"math"
)

// Bar is a stack of parts, from left to right. Parts that are not positive are left out.
type Bar struct {
	Name  string
	Parts []float64
}

// Sizes of bars in pixels.
const barRow, barHeight = 20, 14

// names returns the width of the bars' names, left of the plot, in pixels.
func (p Panel) names() int {
	wide := 0.0
	for _, b := range p.Bars {
		wide = max(wide, widthOf(b.Name))
	}
	return int(math.Ceil(wide)) + 14
}

// bars draws grid, ticks and names on c, and the bars on content, which covers the frame.
func (p Panel) bars(c, content *canvas, f frame) {
	ends := []float64{0}
	for _, b := range p.Bars {
		if len(b.Parts) > len(p.PartNames) {
			panic(fmt.Sprintf("chart: bar %q has %d parts, and %d have names", b.Name, len(b.Parts), len(p.PartNames)))
		}
		end := 0.0
		for _, v := range b.Parts {
			if finite(v) {
				end += max(0, v)
			}
		}
		ends = append(ends, end)
	}
	for _, m := range p.Marks {
		ends = append(ends, m.X)
	}
	axis := p.X
	axis.Log = 0 // a logarithm has no parts
	x := axis.of(ends)
	p.marks(content, &f, x)
	bottom := float64(f.top + f.height)
	c.printf(`<g stroke="%s" stroke-width="0.5">`+"\n", ink)
	for _, t := range x.ticks {
		c.printf(`<path d="M%s %sV%s" stroke-opacity="0.5"/>`+"\n", px(f.x(x, t.value)), px(float64(f.top)), px(bottom+4))
	}
	c.printf("</g>\n")
	for _, t := range x.ticks {
		c.text(f.x(x, t.value), bottom+17, "middle", "", t.label)
	}
	for i, b := range p.Bars {
		top := float64(f.top + f.head + inset + i*barRow + (barRow-barHeight)/2)
		c.text(float64(f.left-6), top+barHeight-3, "end", "", b.Name)
		end := 0.0
		for j, v := range b.Parts {
			if !finite(v) || v <= 0 {
				continue
			}
			from, to := f.x(x, end), f.x(x, end+v)
			content.printf(`<path d="M%s %sH%sv%dH%sz" fill="%s"><title>%s</title></path>`+"\n", px(from), px(top), px(to), barHeight, px(from),
				Style{Colour: j}.colour(), escape(fmt.Sprintf("%s, %s: %.4g", b.Name, p.PartNames[j], v)))
			end += v
		}
	}
}

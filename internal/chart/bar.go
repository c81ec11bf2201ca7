package chart

import (
	"fmt"
	"math"
)

// Bar is a stack of parts, from left to right. Parts that are zero or negative are left out.
type Bar struct {
	Name  string
	Parts []float64
	// Interval is drawn around the bar's end, low and high, as a whisker over a paler bar. Default: none.
	Interval []float64
	// Label is written right of the bar. Default: none.
	Label string
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

// bars draws grid, ticks and names on c. It draws the bars on content, which lies above the frame.
func (p Panel) bars(c, content *canvas, f frame) {
	ends, widest := []float64{0}, 0.0
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
		ends = append(append(ends, end), b.Interval...)
		if b.Label != "" { // the label needs room
			widest = max(widest, widthOf(b.Label)+2*markGap)
		}
	}
	for _, m := range p.Marks {
		ends = append(ends, m.X)
	}
	axis := p.X
	axis.Log = 0 // a logarithmic axis cannot show parts
	x := axis.of(ends)
	if widest > 0 {
		x.high = x.low + (x.high-x.low)*float64(f.width-2*inset)/max(1, float64(f.width-2*inset)-widest)
	}
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
		end, pale, colour := 0.0, "", palette[0]
		if b.Interval != nil {
			pale = ` fill-opacity="0.45"`
		}
		for j, v := range b.Parts {
			if !finite(v) || v <= 0 {
				continue
			}
			from, to := f.x(x, end), f.x(x, end+v)
			content.printf(`<path d="M%s %sH%sv%dH%sz" fill="%s"%s><title>%s</title></path>`+"\n", px(from), px(top), px(to), barHeight, px(from),
				Style{Colour: j}.colour(), pale, escape(fmt.Sprintf("%s, %s: %.4g", b.Name, p.PartNames[j], v)))
			end, colour = end+v, Style{Colour: j}.colour()
		}
		middle, right := top+barHeight/2, f.x(x, end)
		if in := b.Interval; len(in) == 2 && finite(in[0]) && finite(in[1]) {
			content.printf(`<path fill="none" stroke="%s" stroke-width="1.3" d="M%s %sv6m0 -3H%sm0 -3v6"><title>%s</title></path>`+"\n", colour,
				px(f.x(x, in[0])), px(middle-3), px(f.x(x, in[1])), escape(fmt.Sprintf("%s: %.4g to %.4g", b.Name, in[0], in[1])))
			right = max(right, f.x(x, in[1]))
		}
		if b.Label != "" {
			content.text(right+markGap, top+barHeight-3, "start", "", b.Label)
		}
	}
}

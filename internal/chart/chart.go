package chart

import (
	"cmp"
	"fmt"
	"slices"
)

// Chart is a set of panels above a legend.
type Chart struct {
	Title  string
	Panels []Panel
	// Columns is the number of panels in a row. Default 1.
	Columns int
	// Width is the width in pixels. Default 850; a narrow screen shows 420 without making text too small.
	Width int
	// Legend groups entries under headings, in up to four columns. Default: one entry for every named line and every
	// named part of a bar.
	Legend []Group
}

// Panel draws lines or bars in a frame. A panel without both shows "not measured".
type Panel struct {
	Title string
	// X is the axis of values for bars. Bars have no Y axis.
	X, Y  Axis
	Lines []Line
	Marks []Mark
	// Bars are drawn below each other. A panel with bars has no lines.
	Bars []Bar
	// Height is the height of a panel of lines, in pixels. Default 210.
	Height int
	// PartNames are the names of the bars' parts, which have the palette's colours in this order.
	PartNames []string
}

// Sizes in pixels.
const (
	usualWidth, fontSize       = 850, 12
	marginTop, marginRight     = 30, 16
	marginLeft, betweenColumns = 64, 70 // least widths; names of bars may need more
	below                      = 76     // for labels below a plot and the title of the next one
	plotHeight                 = 210
	inset                      = 8 // between the frame and the outermost points
)

// SVG draws the chart. It panics if a line's slices differ in length, or if a bar has more parts than PartNames.
func (c Chart) SVG() []byte {
	columns, width := max(1, c.Columns), cmp.Or(c.Width, usualWidth)
	gutters := make([]int, columns) // left of each column
	taken := marginRight
	for i := range gutters {
		gutters[i] = betweenColumns
		if i == 0 {
			gutters[i] = marginLeft
		}
		for j := i; j < len(c.Panels); j += columns {
			gutters[i] = max(gutters[i], c.Panels[j].names())
		}
		taken += gutters[i]
	}
	plotWidth := max(100, (width-taken)/columns)
	var body canvas
	top := marginTop
	for row := range slices.Chunk(c.Panels, columns) {
		left, height := 0, 0
		for i, p := range row {
			left += gutters[i]
			p.draw(&body, frame{left: left, top: top, width: plotWidth, height: p.height()})
			left, height = left+plotWidth, max(height, p.height())
		}
		top += height + below
	}
	if width < usualWidth { // no title follows below the last row
		top -= 24
	}
	bottom := c.legend(&body, top, width) + 8
	var all canvas
	all.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="%d" fill="%s">`+"\n",
		width, bottom, width, bottom, fontSize, ink)
	all.printf("<title>%s</title>\n%s</svg>\n", escape(c.Title), body.String())
	return all.Bytes()
}

// frame is the frame of a plot, in pixels. head is the space for labels of marks.
type frame struct{ left, top, width, height, head int }

func (f frame) x(r ruler, v float64) float64 {
	return float64(f.left+inset) + r.place(v)*float64(f.width-2*inset)
}

func (f frame) y(r ruler, v float64) float64 {
	return float64(f.top+f.height-inset) - r.place(v)*float64(f.height-f.head-2*inset)
}

func (p Panel) height() int {
	if p.Bars == nil {
		return cmp.Or(p.Height, plotHeight)
	}
	return 2*inset + len(p.Bars)*barRow + min(len(p.Marks), markRows)*markRow
}

// draw draws the panel's plot in a frame, with labels around it.
func (p Panel) draw(c *canvas, f frame) {
	left, top, centre, middle := float64(f.left), float64(f.top), float64(f.left+f.width/2), float64(f.top+f.height/2)
	c.text(left, top-8, "start", ` font-weight="bold"`, p.Title)
	c.text(centre, top+float64(f.height)+34, "middle", "", p.X.Label)
	if p.Y.Label != "" && p.Bars == nil {
		at := fmt.Sprintf(` transform="rotate(-90 %s %s)"`, px(left-44), px(middle))
		c.text(left-44, middle, "middle", at, p.Y.Label)
	}
	var content canvas
	switch {
	case p.Bars != nil:
		p.bars(c, &content, f)
	case p.Lines != nil:
		p.lines(c, &content, f)
	default:
		c.text(centre, middle, "middle", "", "not measured")
	}
	c.printf(`<rect x="%s" y="%s" width="%d" height="%d" fill="none" stroke="%s"/>`+"\n", px(left), px(top), f.width, f.height, ink)
	c.Write(content.Bytes())
}

package paper

import "github.com/lowtoggle/lowtoggle/bench/experiment"

// figure is up to four panels, two beside each other, over a legend.
type figure struct {
	title  string
	panels []panel
	setups []experiment.Setup // of the legend
}

const (
	marginLeft, marginTop = 64, 30
	betweenX, betweenY    = 70, 76
	figureWidth           = marginLeft + 2*plotWidth + betweenX + 16
	legendTop             = marginTop + 2*(plotHeight+betweenY)
	legendRow             = 18
	legendColumn          = (figureWidth - marginLeft) / 4
)

// svg draws it. The same figure gives the same bytes.
func (f figure) svg() []byte {
	among := ways(f.setups)
	var body canvas
	for i, p := range f.panels {
		body.draw(p, marginLeft+float64(i%2)*(plotWidth+betweenX), marginTop+float64(i/2)*(plotHeight+betweenY))
	}
	// A column of the legend for every way of measuring, four beside each other.
	top, bottom := legendTop, legendTop
	for i, w := range among {
		if i%4 == 0 {
			top = bottom
		}
		x, y := float64(marginLeft+i%4*legendColumn), top+legendRow
		body.text(x, float64(y), "start", "", w.String())
		for _, s := range f.setups {
			if wayOf(s) == w {
				y += legendRow
				body.entry(s, lookOf(s, among), x, float64(y))
			}
		}
		bottom = max(bottom, y+legendRow/2)
	}
	var c canvas
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="%d" fill="%s">`+"\n",
		figureWidth, bottom+8, figureWidth, bottom+8, fontSize, ink)
	c.printf("<title>%s</title>\n%s</svg>\n", escape(f.title), body.String())
	return c.Bytes()
}

// entry is a line of the legend.
func (c *canvas) entry(s experiment.Setup, l look, x, y float64) {
	c.printf(`<g fill="%s" stroke="%s"><path stroke-width="1.3"%s d="M%s %sh30"/><path stroke="none" d="M%s %s%s"/></g>`+"\n",
		l.colour, l.colour, dashed(l.dashes), px(x), px(y-4), px(x+15), px(y-4), l.marker)
	c.text(x+38, y, "start", "", s.Type.String())
}

package chart

import "slices"

// Group is a group of legend entries under a heading.
type Group struct {
	Title   string
	Entries []Entry
}

// Entry is an entry of the legend. A solid entry is a part of bars. A scattered entry has a marker and no line.
type Entry struct {
	Name string
	Style
	Solid, Scattered bool
}

const (
	legendRow  = 18
	legendLeft = 38 // from the sample to the name
)

// legend draws the legend of a chart of the given width from top on. It returns the legend's lower end.
func (c Chart) legend(body *canvas, top, width int) (bottom int) {
	left := marginLeft
	if width < usualWidth {
		left = inset
	}
	legendWidth := width - left
	groups := c.Legend
	if groups == nil {
		for _, e := range c.entries() {
			groups = append(groups, Group{Entries: []Entry{e}})
		}
	}
	wide := 0.0
	for _, g := range groups {
		wide = max(wide, widthOf(g.Title)+inset)
		for _, e := range g.Entries {
			wide = max(wide, legendLeft+widthOf(e.Name)+inset)
		}
	}
	columns := min(4, max(1, int(float64(legendWidth)/max(1, wide))))
	bottom = top
	for i, g := range groups {
		if i%columns == 0 {
			top = bottom
		}
		x, y := float64(left+i%columns*(legendWidth/columns)), top
		if g.Title != "" {
			y += legendRow
			body.text(x, float64(y), "start", "", g.Title)
		}
		for _, e := range g.Entries {
			y += legendRow
			e.draw(body, x, float64(y))
		}
		bottom = max(bottom, y+legendRow/2)
	}
	return bottom
}

// entries lists all named lines and parts of bars without repetition.
func (c Chart) entries() (list []Entry) {
	add := func(e Entry) {
		if e.Name != "" && !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	for _, p := range c.Panels {
		if p.Bars == nil {
			for _, l := range p.Lines {
				add(Entry{Name: l.Name, Style: l.Style})
			}
			continue
		}
		for i, name := range p.PartNames {
			add(Entry{Name: name, Style: Style{Colour: i}, Solid: true})
		}
	}
	return list
}

func (e Entry) draw(c *canvas, x, y float64) {
	c.printf(`<g fill="%s" stroke="%s">`, e.colour(), e.colour())
	switch {
	case e.Solid:
		c.printf(`<path stroke="none" d="M%s %sh30v10h-30z"/>`, px(x), px(y-9))
	case !e.Scattered:
		c.printf(`<path stroke-width="1.3"%s d="M%s %sh30"/>`, e.dashed(), px(x), px(y-4))
	}
	if m := e.marker(); m != "" {
		c.printf(`<path %s d="M%s %s%s"/>`, e.filled(), px(x+15), px(y-4), m)
	}
	c.printf("</g>\n")
	c.text(x+legendLeft, y, "start", "", e.Name)
}

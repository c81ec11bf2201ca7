package chart

// Mark is a vertical line at a value of the X axis.
type Mark struct {
	X     float64
	Label string
}

const (
	markRow  = 14 // of labels, in pixels
	markRows = 4  // at most; a mark whose label finds no place has it as its title alone
)

// marks draws them with their labels in rows at the top, where it makes the frame leave room: a label
// that would lie on one before goes below it.
func (p Panel) marks(c *canvas, f *frame, x ruler) {
	const gap = 4
	top, bottom, right := float64(f.top), float64(f.top+f.height), float64(f.left+f.width)
	var ends []float64 // of the rows' last labels
	for _, m := range p.Marks {
		if !x.shows(m.X) {
			continue
		}
		at := f.x(x, m.X)
		c.printf(`<path d="M%s %sV%s" fill="none" stroke="%s" stroke-dasharray="4 3"><title>%s</title></path>`+"\n",
			px(at), px(top), px(bottom), ink, escape(m.Label))
		from, to, anchor := at+gap, at+gap+widthOf(m.Label), "start"
		if to > right {
			from, to, anchor = at-gap-widthOf(m.Label), at-gap, "end"
		}
		row := 0
		for row < len(ends) && from < ends[row]+gap {
			row++
		}
		if row == markRows {
			continue
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row] = to
		baseline := top + markRow*float64(row+1)
		if anchor == "start" {
			c.text(from, baseline, anchor, "", m.Label)
		} else {
			c.text(to, baseline, anchor, "", m.Label)
		}
	}
	f.head = markRow * len(ends)
}

package chart

import (
	"cmp"
	"slices"
)

// Mark is a vertical line at a value of the X axis.
type Mark struct {
	X     float64
	Label string
}

const (
	markRow  = 14 // height of a label in pixels
	markRows = 4  // largest number of rows; a mark without space for its label has only a title
	markGap  = 4  // pixels between a line and its label, and around labels
)

// placed is a mark with its label's row and horizontal extent.
type placed struct {
	Mark
	at, from, to float64
	anchor       string
	row          int
}

// marks draws the marks, with their labels in rows at the top, and reserves the frame's head for the labels. A line
// begins at its label's row and crosses no other label.
func (p Panel) marks(c *canvas, f *frame, x ruler) {
	right := float64(f.left + f.width)
	var all []placed
	for _, m := range p.Marks {
		if !x.shows(m.X) {
			continue
		}
		at := f.x(x, m.X)
		label := placed{Mark: m, at: at, from: at + markGap, to: at + markGap + widthOf(m.Label), anchor: "start"}
		if label.to > right {
			label.from, label.to, label.anchor = at-markGap-widthOf(m.Label), at-markGap, "end"
		}
		all = append(all, label)
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	rows := arrange(all)
	f.head = markRow * rows
	bottom := float64(f.top + f.height)
	for _, m := range all {
		top := float64(f.top + markRow*min(m.row, rows))
		c.printf(`<path d="M%s %sV%s" fill="none" stroke="%s" stroke-dasharray="4 3"><title>%s</title></path>`+"\n",
			px(m.at), px(top), px(bottom), ink, escape(m.Label))
		switch {
		case m.row >= markRows:
		case m.anchor == "start":
			c.text(m.from, top+markRow, m.anchor, "", m.Label)
		default:
			c.text(m.to, top+markRow, m.anchor, "", m.Label)
		}
	}
}

// arrange assigns rows to sorted marks, and returns the number of rows. If a mark's line would cross another label,
// the mark goes below that label. If only labels overlap, the right one goes below.
func arrange(all []placed) (rows int) {
	for changed := true; changed; {
		changed = false
		for i := range all {
			for j := range all {
				a, b := &all[i], &all[j]
				if i != j && a.row < markRows && b.row <= a.row && a.above(b, i < j) {
					b.row, changed = a.row+1, true
				}
			}
		}
	}
	for _, m := range all {
		if m.row < markRows {
			rows = max(rows, m.row+1)
		}
	}
	return rows
}

// above reports whether a label must be above another mark's label. first is true if the label is further left.
func (m *placed) above(other *placed, first bool) bool {
	overlap := m.row == other.row && m.from < other.to+markGap && other.from < m.to+markGap
	return m.crossed(other, first) || overlap && first && !other.crossed(m, !first)
}

// crossed reports whether another mark's line would cross a label.
func (m *placed) crossed(by *placed, first bool) bool {
	switch {
	case by.at == m.at:
		return first
	case m.anchor == "end":
		return by.at < m.at && by.at > m.from-markGap
	}
	return by.at > m.at && by.at < m.to+markGap
}

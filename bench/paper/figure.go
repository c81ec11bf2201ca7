package paper

import (
	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// figure draws up to four panels, two in a row, above a legend. The legend has one column per set of conditions, with an entry
// for each type.
func figure(title string, panels []chart.Panel, setups []experiment.Setup) chart.Chart {
	among := allConditions(setups)
	c := chart.Chart{Title: title, Panels: panels, Columns: 2, Legend: []chart.Group{}}
	for _, w := range among {
		g := chart.Group{Title: w.String()}
		for _, s := range setups {
			if conditionsOf(s) == w {
				g.Entries = append(g.Entries, chart.Entry{Name: s.Type.String(), Style: styleOf(s, among)})
			}
		}
		c.Legend = append(c.Legend, g)
	}
	return c
}

package paper

import (
	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// figure draws up to four panels, two in a row, above a legend with a column for all types under the same
// conditions.
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

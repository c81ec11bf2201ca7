package paper

import (
	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// figure is up to four panels, two beside each other, over a legend with a column for every way of
// measuring.
func figure(title string, panels []chart.Panel, setups []experiment.Setup) chart.Chart {
	among := ways(setups)
	c := chart.Chart{Title: title, Panels: panels, Columns: 2, Legend: []chart.Group{}}
	for _, w := range among {
		g := chart.Group{Title: w.String()}
		for _, s := range setups {
			if wayOf(s) == w {
				g.Entries = append(g.Entries, chart.Entry{Name: s.Type.String(), Style: styleOf(s, among)})
			}
		}
		c.Legend = append(c.Legend, g)
	}
	return c
}

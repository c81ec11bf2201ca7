package page

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// Ratio is an energy relative to a baseline, with its interval.
type Ratio struct {
	Name     string
	Relative float64
	Interval []float64 // 95 %; empty: unknown
	How      report.How
}

// Sizes of names in charts, in characters.
const (
	narrowNames = 22
	wideNames   = 60
)

// Ratios draws relative energies as bars with intervals, at the width of a phone. over names the baseline.
func Ratios(title, over string, list []Ratio) chart.Chart {
	c := ratios(title, over, list, narrowNames)
	c.Width = report.Narrow
	return c
}

// WideRatios draws the same chart as [Ratios], at the width of a picture file.
func WideRatios(title, over string, list []Ratio) chart.Chart {
	return ratios(title, over, list, wideNames)
}

func ratios(title, over string, list []Ratio, names int) chart.Chart {
	var kinds []string
	for _, r := range list {
		if !slices.Contains(kinds, string(r.How)) {
			kinds = append(kinds, string(r.How))
		}
	}
	panel := chart.Panel{Title: title, X: chart.Axis{Label: "energy, % of " + over}, PartNames: kinds}
	for _, r := range list {
		b := chart.Bar{Name: term.Shorten(r.Name, names), Parts: make([]float64, len(kinds)), Label: term.Change(r.Relative)}
		b.Parts[slices.Index(kinds, string(r.How))] = 100 * r.Relative
		if len(r.Interval) == 2 {
			b.Interval = []float64{100 * r.Interval[0], 100 * r.Interval[1]}
		}
		panel.Bars = append(panel.Bars, b)
	}
	c := chart.Chart{Title: title, Panels: []chart.Panel{panel}}
	if len(kinds) == 1 { // the title or caption names the only kind
		c.Legend = []chart.Group{}
	}
	return c
}

// Between formats an interval of ratios as changes.
func Between(interval []float64) string {
	if len(interval) != 2 {
		return ""
	}
	return fmt.Sprintf("95 %%: %s … %s", term.Change(interval[0]), term.Change(interval[1]))
}

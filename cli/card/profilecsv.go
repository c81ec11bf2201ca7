package card

import (
	"strconv"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
)

// traceTable is the output of profile --csv: a row for every cell of every trace. Time is the beginning of the cell, in
// seconds since the work began. The interval is a 95 % interval.
func traceTable(r *profile.Result) [][]string {
	table := [][]string{{"profile", "product", "at_seconds", "step_seconds", "watts", "low", "high", "resolution_seconds", "origin"}}
	origin := cardOrigin("", r.GPU, r.Card.ID())
	for i, p := range r.Profiles {
		if p.Trace == nil {
			continue
		}
		name := ""
		if len(p.Segments) > 0 {
			name = p.Segments[0].Name
		}
		t := p.Trace
		for k, watts := range t.Watts {
			at := func(list []float64) string {
				if k >= len(list) {
					return ""
				}
				return term.Cell(list[k])
			}
			resolution := ""
			if k < len(t.Resolution) {
				resolution = term.Cell(t.Resolution[k].Seconds())
			}
			begin := t.Start.Seconds() + float64(float64(k)*t.Step.Seconds())
			table = append(table, []string{strconv.Itoa(i + 1), name, term.Cell(begin), term.Cell(t.Step.Seconds()), term.Cell(watts), at(t.Low), at(t.High), resolution, origin})
		}
	}
	return table
}

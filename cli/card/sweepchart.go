package card

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/sweep"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// sweepChart draws energy and time over the power limit, and over the clock if clocks were locked. With a single
// setting, the chart has no panels.
func sweepChart(r *sweep.Result) chart.Chart {
	word := how(r.Simulated)
	if r.Predicted {
		word = "predicted"
	}
	if r.Stopped != "" {
		word += ", " + stoppedWord(r)
	}
	c := chart.Chart{Title: fmt.Sprintf("%s: %s, %s, %s", r.GPU, r.Before, r.Workload, word)}
	for _, axis := range []struct {
		label string
		of    func(sweep.Setting) (float64, bool)
	}{
		{"power limit, W", func(s sweep.Setting) (float64, bool) { return s.Cap, s.Clock == 0 }},
		{"locked clock, MHz", func(s sweep.Setting) (float64, bool) { return s.Clock, s.Clock > 0 }},
	} {
		energy := sweepPanel(r, fmt.Sprintf("%s: energy in %s, %s", r.GPU, r.Workload, word), axis.label, axis.of, func(f *sweep.Figures) (float64, []float64) { return f.RelativeEnergy, f.Interval })
		if len(energy.Lines) == 0 || len(energy.Lines[0].X) < 2 && axis.label[0] == 'p' {
			continue
		}
		time := sweepPanel(r, "time, "+word, axis.label, axis.of, func(f *sweep.Figures) (float64, []float64) { return f.RelativeTime, f.TimeInterval })
		c.Panels = append(c.Panels, energy, time)
	}
	c.Columns = 2
	for i, p := range c.Panels { // the legend shows each name once
		for j := range p.Lines {
			if i > 0 {
				p.Lines[j].Name = ""
			}
		}
	}
	return c
}

// sweepStyles are the styles of original and converted. Both stay visible if the lines coincide.
var sweepStyles = []chart.Style{{Colour: 0, Marker: 2}, {Colour: 1, Dashes: 1, Marker: 4}}

func sweepPanel(r *sweep.Result, title, label string, x func(sweep.Setting) (float64, bool), y func(*sweep.Figures) (float64, []float64)) chart.Panel {
	p := chart.Panel{Title: title, X: chart.Axis{Label: label}, Y: chart.Axis{Label: fmt.Sprintf("relative to the original at %g W", r.Reference)}}
	for i, of := range []func(*sweep.Point) *sweep.Figures{
		func(p *sweep.Point) *sweep.Figures { return &p.Original },
		func(p *sweep.Point) *sweep.Figures { return p.Converted },
	} {
		l := chart.Line{Name: []string{"original: " + r.Before, "converted: " + r.After}[i], Style: sweepStyles[i]}
		known := true
		for i := range r.Points {
			at, on := x(r.Points[i].Setting)
			f := of(&r.Points[i])
			if !on || f == nil {
				continue
			}
			v, in := y(f)
			l.X, l.Y = append(l.X, at), append(l.Y, v)
			if known = known && in != nil; known {
				l.Low, l.High = append(l.Low, in[0]), append(l.High, in[1])
			}
		}
		if !known {
			l.Low, l.High = nil, nil
		}
		if len(l.X) > 0 {
			p.Lines = append(p.Lines, l)
		}
	}
	return p
}

package paper

import (
	"context"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// File is a file to write.
type File struct {
	Name string
	Data []byte
}

// energyAxis is the Y axis of all panels. It always includes 1, the baseline.
var energyAxis = chart.Axis{Label: "energy relative to normal operands", With: []float64{1}}

// experimentFigures lists the paper's figures of experiments. The IDs of the experiments begin with the number.
var experimentFigures = []struct{ number, title string }{
	{"3", "Value distribution"},
	{"4", "Bit similarity"},
	{"5", "Placement"},
	{"6", "Sparsity"},
}

// Figures draws the paper's Figures 3 to 6 and 8 from all results: SVG files named figure-3.svg and so on.
// Figure 8 draws the operands again, which takes a few milliseconds per result. Errors are those of [Align].
func Figures(ctx context.Context, results []Result) ([]File, error) {
	all := bySetup(results)
	setups := setupsOf(all)
	var files []File
	for _, f := range experimentFigures {
		var panels []chart.Panel
		for _, e := range experiments {
			if strings.HasPrefix(e.ID, f.number) {
				panels = append(panels, experimentPanel(e, all))
			}
		}
		fig := figure("Figure "+f.number+": "+f.title, panels, setups)
		files = append(files, File{"figure-" + f.number + ".svg", fig.SVG()})
	}
	panels, err := alignmentPanels(ctx, all)
	if err != nil {
		return nil, err
	}
	fig := figure("Figure 8: Bit alignment and Hamming weight", panels, setups)
	return append(files, File{"figure-8.svg", fig.SVG()}), nil
}

// experimentPanel draws a line for every setup.
func experimentPanel(e Experiment, all []setupResults) chart.Panel {
	p := chart.Panel{Title: e.ID + ": " + e.Title, X: experimentAxis(e), Y: energyAxis}
	for _, s := range all {
		if len(s.of[e.ID]) == 0 {
			continue
		}
		l := chart.Line{Name: s.String(), Style: styleOf(s.Setup, allConditions(setupsOf(all))), Whiskers: true}
		for _, r := range s.of[e.ID] {
			l.X, l.Y = append(l.X, r.X), append(l.Y, r.Relative)
			l.Low, l.High = append(l.Low, r.Relative-r.HalfWidth), append(l.High, r.Relative+r.HalfWidth)
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

func experimentAxis(e Experiment) chart.Axis {
	a := chart.Axis{Label: e.Axis}
	if e.Log {
		a.Log = 2
	}
	return a
}

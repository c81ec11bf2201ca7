package paper

import (
	"context"
	"strings"
)

// File is a file to be written.
type File struct {
	Name string
	Data []byte
}

// energyAxis is the label of all y axes.
const energyAxis = "energy of a product, relative"

// experimentFigures are the paper's figures of experiments; the number begins the experiments' IDs.
var experimentFigures = []struct{ number, title string }{
	{"3", "Value distribution"},
	{"4", "Bit similarity"},
	{"5", "Placement"},
	{"6", "Sparsity"},
}

// Figures draws the paper's Figures 3 to 6 and 8 of whatever was measured: SVG files named
// figure-3.svg and so on. Figure 8 needs the operands' bits, which takes a few milliseconds for each
// result.
func Figures(ctx context.Context, results []Result) ([]File, error) {
	all := curves(results)
	setups := setupsOf(all)
	var files []File
	for _, f := range experimentFigures {
		fig := figure{title: "Figure " + f.number + ": " + f.title, setups: setups}
		for _, e := range experiments {
			if strings.HasPrefix(e.ID, f.number) {
				fig.panels = append(fig.panels, experimentPanel(e, all))
			}
		}
		files = append(files, File{"figure-" + f.number + ".svg", fig.svg()})
	}
	panels, err := alignmentPanels(ctx, all)
	if err != nil {
		return nil, err
	}
	fig := figure{"Figure 8: Bit alignment and Hamming weight", panels, setups}
	return append(files, File{"figure-8.svg", fig.svg()}), nil
}

// experimentPanel has a line for every setup.
func experimentPanel(e Experiment, all []setupCurves) panel {
	p := panel{title: e.ID + ": " + e.Title, xLabel: e.Axis, yLabel: energyAxis, log: e.Log}
	for _, s := range all {
		var dots []dot
		for _, r := range s.of[e.ID] {
			dots = append(dots, dot{r.X, r.Relative, r.HalfWidth})
		}
		if dots != nil {
			p.lines = append(p.lines, line{s.String(), lookOf(s.Setup, ways(setupsOf(all))), dots})
		}
	}
	return p
}

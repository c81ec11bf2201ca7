package paper

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// alignmentPanels are Figure 8: energy against bit alignment and Hamming weight, of the setups that
// change both operands and of those that change the weights alone.
func alignmentPanels(ctx context.Context, all []setupCurves) ([]panel, error) {
	var panels []panel
	for _, c := range []struct {
		change   experiment.Change
		of       string
		weight   string
		weightOf func(Alignment) float64
	}{
		{experiment.Both, "both operands", "A", func(a Alignment) float64 { return a.A }},
		{experiment.Weights, "weights", "w", func(a Alignment) float64 { return a.B }},
	} {
		bits := panel{title: "Bit alignment, " + c.of, xLabel: "share of equal bits in elements multiplied together", yLabel: energyAxis, scattered: true}
		weight := panel{title: "Hamming weight, " + c.of, xLabel: "share of set bits in " + c.weight, yLabel: energyAxis, scattered: true}
		for _, s := range all {
			if s.Change != c.change {
				continue
			}
			l := line{name: s.String(), look: lookOf(s.Setup, ways(setupsOf(all)))}
			ofBits, ofWeight := l, l
			seen := map[operands]bool{}
			for _, e := range experiments {
				for _, r := range s.of[e.ID] {
					if seen[operands{r.A, r.B}] {
						continue // several experiments share them
					}
					seen[operands{r.A, r.B}] = true
					a, err := Align(ctx, r.A, r.B, s.Type.Operand())
					if err != nil {
						return nil, fmt.Errorf("%v: %s at %v: %w", s, e.ID, r.X, err)
					}
					ofBits.dots = append(ofBits.dots, dot{a.Bits, r.Relative, math.NaN()})
					ofWeight.dots = append(ofWeight.dots, dot{c.weightOf(a), r.Relative, math.NaN()})
				}
			}
			bits.lines, weight.lines = append(bits.lines, ofBits), append(weight.lines, ofWeight)
		}
		panels = append(panels, bits, weight)
	}
	return panels, nil
}

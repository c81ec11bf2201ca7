package paper

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/internal/chart"
)

// alignmentPanels draws Figure 8: energy over bit alignment and over Hamming weight, for setups that change both
// operands and for setups that change only the weights.
func alignmentPanels(ctx context.Context, all []setupResults) ([]chart.Panel, error) {
	var panels []chart.Panel
	for _, c := range []struct {
		change   experiment.Change
		of       string
		weight   string
		weightOf func(Alignment) float64
	}{
		{experiment.Both, "both operands", "A", func(a Alignment) float64 { return a.A }},
		{experiment.Weights, "weights", "w", func(a Alignment) float64 { return a.B }},
	} {
		bits := chart.Panel{Title: "Bit alignment, " + c.of, X: chart.Axis{Label: "share of equal bits in elements multiplied together"}, Y: energyAxis}
		weight := chart.Panel{Title: "Hamming weight, " + c.of, X: chart.Axis{Label: "share of set bits in " + c.weight}, Y: energyAxis}
		for _, s := range all {
			if s.Change != c.change {
				continue
			}
			l := chart.Line{Name: s.String(), Style: styleOf(s.Setup, allConditions(setupsOf(all))), Scattered: true}
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
					ofBits.X, ofBits.Y = append(ofBits.X, a.Bits), append(ofBits.Y, r.Relative)
					ofWeight.X, ofWeight.Y = append(ofWeight.X, c.weightOf(a)), append(ofWeight.Y, r.Relative)
				}
			}
			bits.Lines, weight.Lines = append(bits.Lines, ofBits), append(weight.Lines, ofWeight)
		}
		panels = append(panels, bits, weight)
	}
	return panels, nil
}

package profile

import (
	"math"
	"testing"
)

// TestInterleaved: power right after another product is compared with the product's steady power; where that was not
// found, or the trace is too coarse for the segment, there is no ratio.
func TestInterleaved(t *testing.T) {
	result := func() *Result {
		var r Result
		for i := range 2 {
			p := Profile{
				Segments: []Segment{{Product: i, Executions: 9, End: 550 * ms}, {Product: 1 - i, Executions: 4, Begin: 550 * ms, End: 800 * ms}},
				Trace: drawing(func(t float64) float64 { // falls to 600 W; from the second segment on 660
					if t > 0.55 {
						return 660
					}
					return 600 + 300*math.Exp(-t/0.02)
				}, 0.8),
			}
			p.Steady.SSP = SteadyPoint{Found: true, At: 300 * ms, Until: 550 * ms}
			r.Profiles = append(r.Profiles, p)
		}
		return &r
	}
	r := result()
	r.Profiles[0].Trace.Resolution[550] = 70 * ms
	r.interleave()
	for i, over := range []Seconds{70 * ms, 50 * ms} {
		if a := r.Interleaved[i]; a.Product != 1-i || a.Other != i || a.Over != over || math.Abs(a.Ratio-1.1) > 1e-4 || math.Abs(a.Alone-600) > 0.06 {
			t.Errorf("%+v, want product %d over %v", a, 1-i, over)
		}
	}
	r = result()
	r.Profiles = r.Profiles[:1]
	if r.interleave(); len(r.Interleaved) != 0 {
		t.Errorf("held against another product: %+v", r.Interleaved)
	}
	for name, spoil := range map[string]func(p *Profile){
		"too coarse": func(p *Profile) { p.Trace.Resolution[550] = 300 * ms },
		"not steady": func(p *Profile) { p.Steady.SSP = SteadyPoint{} },
	} {
		r := result()
		spoil(&r.Profiles[0])
		spoil(&r.Profiles[1])
		if r.interleave(); len(r.Interleaved) != 2 || r.Interleaved[0].Ratio != 0 || r.Interleaved[0].Interval != [2]float64{} {
			t.Errorf("%s: %+v", name, r.Interleaved)
		}
	}
}

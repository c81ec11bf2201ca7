package sweep

import (
	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// newResult of what was measured. A setting that was visited more than once has the mean of its visits.
func newResult(p Plan, visits []Visit, k []float64) *Result {
	r := &Result{Reference: p.Reference.Cap, Default: p.Default, Intervals: Intervals95, Valid: true, Visits: visits, Points: []Point{}}
	at := map[Setting][]Visit{}
	for _, v := range visits {
		at[v.Setting] = append(at[v.Setting], v)
	}
	for s, all := range at {
		point := Point{Setting: s, Visits: len(all)}
		point.Original = meanOf(all, func(v Visit) power.Summary { return v.Run.Baseline })
		if len(all[0].Run.Variants) > 0 {
			point.Converted = new(meanOf(all, func(v Visit) power.Summary { return v.Run.Variants[0].Summary }))
		}
		r.Points = append(r.Points, point)
	}
	r.Finish(k)
	r.judge(p)
	return r
}

// meanOf visits: geometric of joules and seconds.
func meanOf(visits []Visit, of func(Visit) power.Summary) (f Figures) {
	var joules, seconds, watts, clock []float64
	for _, v := range visits {
		s := of(v)
		joules, seconds, watts = append(joules, s.Joules), append(seconds, s.Seconds), append(watts, s.Watts)
		if s.SMClock != nil {
			clock = append(clock, *s.SMClock)
		}
	}
	f = Figures{Joules: stat.GeometricMean(joules, nil), Seconds: stat.GeometricMean(seconds, nil), Watts: stat.Mean(watts, nil)}
	if len(clock) > 0 {
		f.Clock = new(stat.Mean(clock, nil))
	}
	return f
}

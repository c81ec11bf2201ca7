package sweep

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// scatter holds two variances of logarithms: of a window about the mean of its visit, and of a visit of the reference
// about the mean of all visits of the reference.
type scatter struct {
	window, visit float64
	windows       float64 // degrees of freedom
	visits        float64
}

// intervals sets the intervals of every point, from two kinds of repeated measurements: the windows of all visits, and
// the visits of the reference, between which a card drifts. It uses the wider interval, because three visits give a
// poor estimate of their scatter, and windows do not show drift. The converted weights are compared with the original
// in the same blocks, where drift cancels.
func (r *Result) intervals() {
	if len(r.Visits) == 0 {
		return
	}
	energy := r.scatter(func(w power.Window) float64 { return w.PerExecution }, func(s power.Summary) float64 { return s.Joules })
	time := r.scatter(func(w power.Window) float64 { return w.Seconds }, func(s power.Summary) float64 { return s.Seconds })
	for i := range r.Points {
		p := &r.Points[i]
		first := r.IsReference(p.Setting)
		p.Original.Interval = energy.interval(r, p, p.Original.RelativeEnergy, first, nil)
		p.Original.TimeInterval = time.interval(r, p, p.Original.RelativeTime, first, nil)
		if p.Converted == nil {
			continue
		}
		p.Converted.Interval = energy.interval(r, p, p.Converted.RelativeEnergy, first, func(c power.Comparison) []float64 { return c.Interval })
		p.Converted.TimeInterval = time.interval(r, p, p.Converted.RelativeTime, first, func(c power.Comparison) []float64 { return c.TimeInterval })
	}
}

func (r *Result) scatter(window func(power.Window) float64, summary func(power.Summary) float64) (s scatter) {
	var before []float64
	for _, v := range r.Visits {
		if r.IsReference(v.Setting) {
			before = append(before, math.Log(summary(v.Run.Baseline)))
		}
		names := []string{v.Run.Baseline.Name}
		for _, c := range v.Run.Variants {
			names = append(names, c.Name)
		}
		for _, name := range names {
			var logs []float64
			for _, w := range v.Run.Kept(name) {
				logs = append(logs, math.Log(window(w)))
			}
			if n := float64(len(logs)); n > 1 {
				s.window += stat.Variance(logs, nil) * (n - 1)
				s.windows += n - 1
			}
		}
	}
	if s.windows > 0 {
		s.window /= s.windows
	}
	if n := len(before); n > 1 {
		s.visit, s.visits = stat.Variance(before, nil), float64(n-1)
	}
	return s
}

// interval returns the interval of a ratio to the reference; nil if nothing was repeated. first is true for the
// original. paired returns the interval of converted/original within a visit; it is nil for the original.
func (s scatter) interval(r *Result, p *Point, ratio float64, first bool, paired func(power.Comparison) []float64) []float64 {
	if first && paired == nil {
		return []float64{1, 1}
	}
	n, within := 0, 0.0 // number of windows, and the square of the paired interval's half width
	for _, v := range r.Visits {
		if v.Setting != p.Setting {
			continue
		}
		n += v.Run.Baseline.Windows
		if paired != nil {
			in := paired(v.Run.Variants[0])
			if in == nil {
				return nil
			}
			half := math.Log(in[1]/in[0]) / 2
			within += half * half
		}
	}
	within /= float64(p.Visits * p.Visits)
	half := 0.0
	if !first { // the original is measured at this setting and at the reference
		if s.windows == 0 && s.visits == 0 {
			return nil
		}
		perVisit := float64(n) / float64(p.Visits)
		half = max(spread(s.visit, s.visits), spread(s.window/perVisit, s.windows)) *
			math.Sqrt(1/float64(p.Visits)+1/float64(r.reference().Visits))
	}
	half = math.Sqrt(half*half + within)
	return []float64{ratio * math.Exp(-half), ratio * math.Exp(half)}
}

// spread returns half the width of a value's 95 % interval, from its variance and degrees of freedom; 0 if it is
// unknown.
func spread(variance, freedom float64) float64 {
	if freedom == 0 {
		return 0
	}
	return stats.Student(freedom, 0.95) * math.Sqrt(variance)
}

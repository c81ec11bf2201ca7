package cli

import (
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// part is what is predicted of a layer.
type part struct {
	Layer   string       `json:"layer"`
	Problem gemm.Problem `json:"problem"`
	cost.Prediction
}

// base is the energy and the time of the product of random operands that a prediction is relative to;
// where either is not known of some part, operations stand for it in all.
func base(parts []part) (energy, time []float64) {
	joules, seconds := true, true
	for _, p := range parts {
		joules = joules && p.Joules != nil && p.Relative > 0
		seconds = seconds && p.Seconds != nil && p.RelativeTime > 0
	}
	for _, p := range parts {
		e, t := p.Problem.Ops(), p.Problem.Ops()
		if joules {
			e = *p.Joules / p.Relative
		}
		if seconds {
			t = *p.Seconds / p.RelativeTime
		}
		energy, time = append(energy, e), append(time, t)
	}
	return energy, time
}

// sumOf layers one after the other. Their errors are those of one model, so intervals add up, but for
// those of sampling, which are each layer's own. What is not known of one is not known of all.
func sumOf(parts []part) cost.Prediction {
	if len(parts) == 1 {
		return parts[0].Prediction
	}
	energy, time := base(parts)
	s := cost.Prediction{Calibration: parts[0].Calibration}
	for i, p := range parts {
		share := energy[i] / total(energy)
		s.Relative += share * p.Relative
		s.Interval[0] += share * p.Interval[0]
		s.Interval[1] += share * p.Interval[1]
		s.SamplingError = math.Hypot(s.SamplingError, share*p.SamplingError)
		s.RelativeTime += time[i] / total(time) * p.RelativeTime
		for _, w := range p.Warnings {
			if !slices.Contains(s.Warnings, w) {
				s.Warnings = append(s.Warnings, w)
			}
		}
	}
	joules := each(parts, func(p part) *float64 { return p.Joules })
	seconds := each(parts, func(p part) *float64 { return p.Seconds })
	clocks := each(parts, func(p part) *float64 { return p.Clock })
	if joules != nil {
		s.Joules = new(total(joules))
	}
	if seconds == nil {
		return s
	}
	s.Seconds = new(total(seconds))
	if joules != nil {
		s.Watts = new(*s.Joules / *s.Seconds)
	}
	if clocks != nil { // its mean over time
		cycles := 0.0
		for i, c := range clocks {
			cycles += c * seconds[i]
		}
		s.Clock = new(cycles / *s.Seconds)
	}
	return s
}

// each gives a figure of every part; nil where one is not known.
func each(parts []part, of func(part) *float64) (list []float64) {
	for _, p := range parts {
		v := of(p)
		if v == nil {
			return nil
		}
		list = append(list, *v)
	}
	return list
}

func total(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum
}

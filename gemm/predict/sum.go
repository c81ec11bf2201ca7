package predict

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// sum returns the prediction of one pass through all layers. All layers share the error of one cost model, so their
// intervals add up. Sampling errors are independent. A figure that is unknown for any layer is unknown for the sum.
func sum(layers []Layer) cost.Prediction {
	if len(layers) == 1 {
		return layers[0].Prediction
	}
	energy, time := base(layers)
	var s cost.Prediction
	for i, l := range layers {
		s.Calibration = fuller(s.Calibration, l.Calibration)
		share := energy[i] / total(energy)
		s.Relative += float64(share * l.Relative)
		s.Interval[0] += float64(share * l.Interval[0])
		s.Interval[1] += float64(share * l.Interval[1])
		s.SamplingError = elementary.Hypot(s.SamplingError, share*l.SamplingError)
		s.RelativeTime += float64(time[i] / total(time) * l.RelativeTime)
		for _, w := range l.Warnings {
			if !slices.Contains(s.Warnings, w) {
				s.Warnings = append(s.Warnings, w)
			}
		}
	}
	s.BelowCap = belowCap(layers, energy, time)
	joules := each(layers, func(l Layer) *float64 { return l.Joules })
	seconds := each(layers, func(l Layer) *float64 { return l.Seconds })
	clocks := each(layers, func(l Layer) *float64 { return l.Clock })
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
	if clocks != nil { // mean over time
		cycles := 0.0
		for i, c := range clocks {
			cycles += float64(c * seconds[i])
		}
		s.Clock = new(cycles / *s.Seconds)
	}
	return s
}

// belowCap sums the figures below the power cap. energy and time are every layer's energy and time with random operands
// at the cap; below the cap they are assumed to be in the same proportions.
func belowCap(layers []Layer, energy, time []float64) *cost.BelowCap {
	var s cost.BelowCap
	for i, l := range layers {
		b := l.BelowCap
		if b == nil {
			return nil
		}
		s.Relative += float64(energy[i] / total(energy) * b.Relative)
		s.RelativeTime += float64(time[i] / total(time) * b.RelativeTime)
		s.Clock += float64(time[i] / total(time) * b.Clock)
	}
	s.Interval = inShares(layers, energy, func(b *cost.BelowCap) []float64 { return b.Interval })
	s.TimeInterval = inShares(layers, time, func(b *cost.BelowCap) []float64 { return b.TimeInterval })
	return &s
}

// inShares sums the layers' intervals, weighted by the layers' shares of a total. All layers share the error of one
// cost model. The result is nil if any layer has no interval.
func inShares(layers []Layer, amounts []float64, of func(*cost.BelowCap) []float64) []float64 {
	sum := make([]float64, 2)
	for i, l := range layers {
		interval := of(l.BelowCap)
		if interval == nil {
			return nil
		}
		for end, v := range interval {
			sum[end] += float64(amounts[i] / total(amounts) * v)
		}
	}
	return sum
}

// base returns every layer's energy in joules and time in seconds with random operands. If the energy or time of any
// layer is unknown, the number of operations replaces it for all layers.
func base(layers []Layer) (energy, time []float64) {
	joules, seconds := true, true
	for _, l := range layers {
		joules = joules && l.Joules != nil && l.Relative > 0
		seconds = seconds && l.Seconds != nil && l.RelativeTime > 0
	}
	for _, l := range layers {
		e, t := l.Problem.Ops(), l.Problem.Ops()
		if joules {
			e = *l.Joules / l.Relative
		}
		if seconds {
			t = *l.Seconds / l.RelativeTime
		}
		energy, time = append(energy, e), append(time, t)
	}
	return energy, time
}

// each returns the figure of every layer; nil if it is unknown for any layer.
func each(layers []Layer, of func(Layer) *float64) (list []float64) {
	for _, l := range layers {
		v := of(l)
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

package stitch

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Trace is power over time, in cells of equal length.
type Trace struct {
	Start Seconds   `json:"start_seconds"` // of the first cell; before 0 the card was idle
	Step  Seconds   `json:"step_seconds"`  // length of a cell
	Watts []float64 `json:"watts"`
	// Low and High are the ends of each cell's 95 % interval, from a bootstrap over runs, the sensors' filter and the
	// penalty's weight, with the speed law held fixed.
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
	// Law relates power to speed, and gives the trace more detail than Resolution says; nil if no speed is known.
	Law *SpeedLaw `json:"law,omitempty"`
	// Resolution is the resolution of each cell: the full width at half maximum of the weights with which the cell's watts average
	// power over time. Changes within it cannot be told apart, except those that follow the runs' speed.
	Resolution []Seconds `json:"resolution_seconds"`

	resamples [][]float64 // running integrals of the bootstrap's traces
	wide      float64     // half a 95 % interval, in their standard deviations
}

// Mean returns the mean power between two moments, with the ends of its 95 % interval, in watts. Times beyond the
// trace's ends do not count. An empty trace has 0 W, and so has a nil one.
func (t *Trace) Mean(from, to Seconds) (watts, low, high float64) {
	if t == nil || len(t.Watts) == 0 {
		return 0, 0, 0
	}
	a, b := t.cell(from), t.cell(to)
	if b <= a { // an empty interval: use the cell that contains it
		a = math.Min(math.Floor(a), float64(len(t.Watts)-1))
		b = a + 1
	}
	watts = meanOf(t.Watts, a, b)
	half := t.half(a, b)
	return watts, watts - half, watts + half
}

// ResolutionAt returns the resolution at a moment, or at the end of the trace that is nearer; 0 for an empty trace.
func (t *Trace) ResolutionAt(at Seconds) Seconds {
	if len(t.Resolution) == 0 {
		return 0
	}
	return t.Resolution[min(len(t.Resolution)-1, int(t.cell(at)))]
}

// cell returns the position of a moment in cells from the start, clamped to the trace.
func (t *Trace) cell(at Seconds) float64 {
	return min(float64(len(t.Watts)), max(0, float64(at-t.Start)/float64(t.Step)))
}

// meanOf returns the mean of cells' values from a to b, in cells.
func meanOf(values []float64, a, b float64) float64 {
	sum := 0.0
	for i := int(a); i < len(values) && float64(i) < b; i++ {
		sum += values[i] * (min(b, float64(i+1)) - max(a, float64(i)))
	}
	return sum / (b - a)
}

// half returns half the width of the 95 % interval of the mean from a to b, in cells. A trace that was read from a
// file has no resamples: then it is the mean of the cells' own half widths, which is too wide rather than too narrow.
func (t *Trace) half(a, b float64) float64 {
	if len(t.resamples) < 2 {
		return (meanOf(t.High, a, b) - meanOf(t.Low, a, b)) / 2
	}
	means := make([]float64, len(t.resamples))
	for i, sum := range t.resamples {
		means[i] = meanBetween(sum, a, b)
	}
	return t.wide * stat.StdDev(means, nil)
}

// meanBetween returns the mean from a to b, in cells, of values with this running integral.
func meanBetween(sum []float64, a, b float64) float64 {
	at := func(x float64) float64 {
		i := min(len(sum)-2, int(x))
		return sum[i] + (x-float64(i))*(sum[i+1]-sum[i])
	}
	return (at(b) - at(a)) / (b - a)
}

// running returns the integral of a trace up to each cell's start, in watts × cells.
func running(watts []float64) []float64 {
	sum := make([]float64, len(watts)+1)
	for i, w := range watts {
		sum[i+1] = sum[i] + w
	}
	return sum
}

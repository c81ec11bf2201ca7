package stitch

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Trace is power over time, in cells of equal length.
type Trace struct {
	Start Seconds   `json:"start_seconds"` // start of the first cell; the card was idle before 0
	Step  Seconds   `json:"step_seconds"`  // length of a cell
	Watts []float64 `json:"watts"`
	// Low and High are the ends of each cell's 95 % interval. The bootstrap varies the runs, the sensors' filter and
	// the penalty's weight, and holds the speed law fixed.
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
	// Law relates power to speed. It gives the trace details finer than Resolution. It is nil if no speed is known.
	Law *SpeedLaw `json:"law,omitempty"`
	// Resolution is the resolution of each cell. It is the full width at half maximum of the weights with which the
	// cell's value averages power over time. The trace does not show faster changes, except changes that follow the
	// runs' speed.
	Resolution []Seconds `json:"resolution_seconds"`

	resamples [][]float64 // running integrals of the traces from the bootstrap
	wide      float64     // half of a 95 % interval, in standard deviations of the resamples
}

// Mean returns the mean power between two times in watts, with the ends of its 95 % interval. Times beyond the trace's
// ends are ignored. An empty or nil trace has 0 W.
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

// ResolutionAt returns the resolution at a time; beyond the trace, at its nearer end. It is 0 for an empty trace.
func (t *Trace) ResolutionAt(at Seconds) Seconds {
	if len(t.Resolution) == 0 {
		return 0
	}
	return t.Resolution[min(len(t.Resolution)-1, int(t.cell(at)))]
}

// cell returns a time's position in cells from the start, limited to the trace.
func (t *Trace) cell(at Seconds) float64 {
	return min(float64(len(t.Watts)), max(0, float64(at-t.Start)/float64(t.Step)))
}

// meanOf returns the mean of the cells' values from a to b. a and b are positions in cells.
func meanOf(values []float64, a, b float64) float64 {
	sum := 0.0
	for i := int(a); i < len(values) && float64(i) < b; i++ {
		sum += values[i] * (min(b, float64(i+1)) - max(a, float64(i)))
	}
	return sum / (b - a)
}

// half returns half the width of the 95 % interval of the mean from a to b, in watts. a and b are positions in cells. A
// trace read from a file has no resamples. half then returns the mean of the cells' half widths, which overestimates
// the interval.
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

// meanBetween returns the mean of values from a to b, given their running integral. a and b are positions in cells.
func meanBetween(sum []float64, a, b float64) float64 {
	at := func(x float64) float64 {
		i := min(len(sum)-2, int(x))
		return sum[i] + (x-float64(i))*(sum[i+1]-sum[i])
	}
	return (at(b) - at(a)) / (b - a)
}

// running returns the running integral of a trace at each cell's start, in watts × cells.
func running(watts []float64) []float64 {
	sum := make([]float64, len(watts)+1)
	for i, w := range watts {
		sum[i+1] = sum[i] + w
	}
	return sum
}

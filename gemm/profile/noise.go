package profile

import (
	"math"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// noise of a sensor's readings: a standard deviation in watts while the card works, one while it is idle, as
// an idle card is much quieter, and one in seconds of the moments that they are for.
type noise struct{ watts, idle, timing float64 }

// outlying is how many standard deviations off a reading counts less than others (Huber's weights), and
// absurd how many off not at all.
const outlying, absurd = 1.5, 8

// quieter an idle card is at most, by a factor: a few surer readings should not decide on all levels.
const quieter = 4

// many readings of a kind tell its noise apart from that of others.
const many = 40

// reweigh finds the sensors' noise from the residuals about a curve, and weighs the rows by it.
func reweigh(c cells, rows []row, p []float64, sensors int, floor float64) []noise {
	found := make([]noise, sensors)
	for k := range found {
		found[k] = noiseOf(c, rows, p, k, floor)
	}
	weigh(c, rows, p, found)
	return found
}

// weigh the rows by their sensors' noise and their residuals about a curve.
func weigh(c cells, rows []row, p []float64, of []noise) {
	for i := range rows {
		r := &rows[i]
		n := of[r.sensor]
		level := n.watts
		if r.idle {
			level = n.idle
		}
		r.sigma = math.Hypot(level, n.timing*r.slope(c, p))
		r.weight = 1 / (r.sigma * r.sigma)
		switch z := math.Abs(r.watts-r.mean(p)) / r.sigma; {
		case z > absurd:
			r.weight = 0
		case z > outlying:
			r.weight *= outlying / z
		}
	}
}

// noiseOf a sensor: timing is found from those that change by more than that within
// a millisecond.
func noiseOf(c cells, rows []row, p []float64, sensor int, floor float64) noise {
	var working, idle []float64
	for _, r := range rows {
		switch off := math.Abs(r.watts - r.mean(p)); {
		case r.sensor != sensor:
		case r.idle:
			idle = append(idle, off)
		default:
			working = append(working, off)
		}
	}
	of := func(off []float64) float64 { return max(floor, deviation(off)) }
	n := noise{watts: floor, idle: floor}
	switch {
	case len(working) >= many && len(idle) >= many:
		n.watts = of(working)
		n.idle = max(of(idle), n.watts/quieter)
	case len(working)+len(idle) > 0: // too few of a kind to be told apart
		n.watts = of(append(working, idle...))
		n.idle = n.watts
	}
	var late []float64
	for _, r := range rows {
		if slope := r.slope(c, p); r.sensor == sensor && slope > n.watts/1e-3 {
			late = append(late, max(0, math.Abs(r.watts-r.mean(p))-0.6745*n.watts)/slope)
		}
	}
	if len(late) >= enough {
		n.timing = deviation(late)
	}
	return n
}

// deviation is the standard deviation of normal values of which these are the magnitudes.
func deviation(magnitudes []float64) float64 { return stats.Median(magnitudes) / 0.6745 }

// slope is by how many watts a second the span's mean changes with its moment, at most.
func (s span) slope(c cells, p []float64) float64 {
	change := 0.0
	for i, w := range s.share {
		change += w * (p[min(len(p)-1, s.first+i+1)] - p[s.first+i])
	}
	return math.Abs(change) / c.step
}

// huber is the loss of a residual in standard deviations.
func huber(z float64) float64 {
	if z = math.Abs(z); z <= outlying {
		return z * z / 2
	}
	return outlying * (min(z, absurd) - outlying/2)
}

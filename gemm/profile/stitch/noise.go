package stitch

import (
	"math"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// noise holds the standard deviations of a sensor's readings: in watts while the card works, in watts while it is idle
// (an idle card has much less noise), and in seconds for the time of a reading.
type noise struct{ watts, idle, timing float64 }

// huberLimit and rejectLimit are residuals in standard deviations. Above huberLimit a reading's weight falls (Huber's
// weights). Above rejectLimit the weight is 0.
const huberLimit, rejectLimit = 1.5, 8

// quietest is the largest ratio of a sensor's noise under load to its noise when idle. Without this limit, a few
// precise readings of the idle card would determine all gains.
const quietest = 4

// minPerState is the smallest number of readings for separate estimates of the noise under load and when idle.
const minPerState = 40

// reweigh estimates the sensors' noise from the residuals about a trace, and sets the rows' weights from the noise.
func reweigh(c cells, rows []row, p []float64, sensors int, floor float64) []noise {
	found := make([]noise, sensors)
	for k := range found {
		found[k] = noiseOf(c, rows, p, k, floor)
	}
	weigh(c, rows, p, found)
	return found
}

// weigh sets the rows' weights from their sensors' noise and their residuals about a trace.
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
		case z > rejectLimit:
			r.weight = 0
		case z > huberLimit:
			r.weight *= huberLimit / z
		}
	}
}

// noiseOf estimates a sensor's noise from its residuals. The timing error is estimated from readings at which power
// changes within a millisecond by more than the noise.
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
	case len(working) >= minPerState && len(idle) >= minPerState:
		n.watts = of(working)
		n.idle = max(of(idle), n.watts/quietest)
	case len(working)+len(idle) > 0: // too few readings for two estimates
		n.watts = of(append(working, idle...))
		n.idle = n.watts
	}
	var late []float64
	for _, r := range rows {
		if slope := r.slope(c, p); r.sensor == sensor && slope > n.watts/1e-3 {
			late = append(late, max(0, math.Abs(r.watts-r.mean(p))-0.6745*n.watts)/slope)
		}
	}
	if len(late) >= minReadings {
		n.timing = deviation(late)
	}
	return n
}

// deviation estimates the standard deviation of normally distributed values from the median of their magnitudes.
func deviation(magnitudes []float64) float64 { return stats.Median(magnitudes) / 0.6745 }

// slope returns the largest rate at which the span's mean changes when the span moves in time, in watts per second.
func (s span) slope(c cells, p []float64) float64 {
	change := 0.0
	for i, w := range s.share {
		change += w * (p[min(len(p)-1, s.first+i+1)] - p[s.first+i])
	}
	return math.Abs(change) / c.step
}

// huber returns Huber's loss of a residual in standard deviations. The loss is constant above rejectLimit.
func huber(z float64) float64 {
	if z = math.Abs(z); z <= huberLimit {
		return z * z / 2
	}
	return huberLimit * (min(z, rejectLimit) - huberLimit/2)
}

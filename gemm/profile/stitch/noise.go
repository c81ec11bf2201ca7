package stitch

import (
	"math"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// noise of a sensor's readings as standard deviations: in watts while the card works, in watts while it is idle (an
// idle card is much quieter), and in seconds for the moment of a reading.
type noise struct{ watts, idle, timing float64 }

// Residuals in standard deviations: from huberLimit on a reading's weight falls (Huber's weights), and from
// rejectLimit on it is 0.
const huberLimit, rejectLimit = 1.5, 8

// quietest bounds the ratio of a sensor's noise under load to its noise when idle. Otherwise a few precise readings
// of the idle card would decide all gains.
const quietest = 4

// minPerState is the least number of readings for a separate estimate of the noise under load, or when idle.
const minPerState = 40

// reweigh estimates the sensors' noise from the residuals about a trace, and weights the rows by it.
func reweigh(c cells, rows []row, p []float64, sensors int, floor float64) []noise {
	found := make([]noise, sensors)
	for k := range found {
		found[k] = noiseOf(c, rows, p, k, floor)
	}
	weigh(c, rows, p, found)
	return found
}

// weigh sets the rows' weights by their sensors' noise and their residuals about a trace.
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

// noiseOf estimates a sensor's noise from its residuals. The timing error comes from readings where power changes by
// more than the noise within a millisecond.
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
	case len(working)+len(idle) > 0: // too few of either to estimate both
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

// deviation estimates the standard deviation of normal values from their magnitudes, by the median.
func deviation(magnitudes []float64) float64 { return stats.Median(magnitudes) / 0.6745 }

// slope returns how fast the span's mean changes with its moment, at most, in watts per second.
func (s span) slope(c cells, p []float64) float64 {
	change := 0.0
	for i, w := range s.share {
		change += w * (p[min(len(p)-1, s.first+i+1)] - p[s.first+i])
	}
	return math.Abs(change) / c.step
}

// huber returns Huber's loss of a residual in standard deviations, constant from rejectLimit on.
func huber(z float64) float64 {
	if z = math.Abs(z); z <= huberLimit {
		return z * z / 2
	}
	return huberLimit * (min(z, rejectLimit) - huberLimit/2)
}

package profile

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// The curve has the level of the energy counter where there is one, and else of the first sensor. What others read
// of it is found from all their readings, as they may be calibrated a little differently.

// anchor the curve and the sensors' gains to the energy counter, whichever sensor was the first.
func (s *stitching) anchor(c *Curve) {
	counter := s.counter()
	if counter == nil {
		return
	}
	level := counter.Gain
	for _, src := range s.sources {
		src.Gain /= level
	}
	for _, values := range append([][]float64{c.Watts, c.Low, c.High}, c.resamples...) {
		floats.Scale(level, values)
	}
}

// levels are what each sensor's readings are of the curve's means, over what the first sensor's are.
func levels(rows []row, p []float64, sensors int, times func(run int) float64) []float64 {
	above, below := make([]float64, sensors), make([]float64, sensors)
	for _, r := range rows {
		w, m := r.weight*times(r.run), r.mean(p)
		above[r.sensor] += w * m * r.watts
		below[r.sensor] += w * m * m
	}
	level := make([]float64, sensors)
	for k := range level {
		if level[k] = above[k] / below[k] * below[0] / above[0]; !(level[k] > 0) || math.IsInf(level[k], 0) {
			level[k] = 1
		}
	}
	return level
}

// divide readings by their sensors' levels.
func divide(rows []row, level []float64) {
	for i := range rows {
		rows[i].watts /= level[rows[i].sensor]
	}
}

// level of a source against a curve, from the median of its readings: good enough to begin with, whatever its
// window.
func (s *stitching) level(src *source, c *solution) float64 {
	var share []float64
	for _, r := range s.rows([]*source{src}) {
		if m := r.mean(c.watts); m > 0 {
			share = append(share, r.watts/m)
		}
	}
	if len(share) == 0 {
		return 1
	}
	if level := stats.Median(share); level > 0 {
		return level
	}
	return 1
}

package profile

import (
	"math"
	"time"
)

// Difference between two curves, as shares of the second.
type Difference struct {
	Largest float64
	At      time.Duration // of the largest
	Mean    float64
	// Apart is the share of cells that lie further apart than both intervals allow together: 0.05 for curves that
	// differ by chance alone.
	Apart float64
}

// Agreement compares two curves from one moment to another, where both are, in the cells of a.
func Agreement(a, b *Curve, from, to time.Duration) Difference {
	var d Difference
	n := 0.0
	for i, w := range a.Watts {
		at := a.Start + time.Duration(i)*a.Step
		if at < max(from, b.Start) || at+a.Step > min(to, b.end()) {
			continue
		}
		other := b.mean(b.cell(at), b.cell(at+a.Step))
		off := math.Abs(w-other) / math.Abs(other)
		if off > d.Largest {
			d.Largest, d.At = off, at
		}
		d.Mean += off
		if c, e := a.cell(at), b.cell(at); math.Abs(w-other) > math.Hypot(a.half(c, c+1), b.half(e, b.cell(at+a.Step))) {
			d.Apart++
		}
		n++
	}
	if n > 0 {
		d.Mean /= n
		d.Apart /= n
	}
	return d
}

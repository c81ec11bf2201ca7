package measure

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Relative is a point's energy and time relative to the baseline.
type Relative struct {
	Name   string
	Energy float64
	Time   float64
	Reading
}

// Relative returns every point's reading relative to the baseline at the time of the reading. The baseline is
// interpolated linearly, in its logarithm, between its readings before and after. Before its first and after its last
// reading, the nearest reading is used. If the baseline has no reading, no point is returned.
func (s *Session) Relative() []Relative {
	var list []Relative
	for i, r := range s.Readings {
		if r.Baseline {
			continue
		}
		joules, seconds, ok := s.baselineAt(i)
		if ok {
			list = append(list, Relative{r.Load, r.PerExecution / joules, r.Seconds / seconds, r})
		}
	}
	return list
}

// Scatter returns the standard deviation of one relative energy. It compares each reading of the baseline with the
// neighbouring readings of the baseline. It is NaN for fewer than four readings of the baseline.
func (s *Session) Scatter() float64 {
	var off []float64
	all := 0
	for i, r := range s.Readings {
		if !r.Baseline {
			continue
		}
		all++
		if joules, _, ok := s.baselineAt(i); ok && s.inside(i) {
			// As for a point, the variance has two parts: the reading itself and the interpolated baseline.
			off = append(off, math.Log(r.PerExecution/joules))
		}
	}
	if all < 4 {
		return math.NaN()
	}
	return math.Sqrt(stat.MomentAbout(2, off, 0, nil))
}

// inside reports whether the baseline was read before and after reading i.
func (s *Session) inside(i int) bool {
	_, before := s.nearest(i, -1)
	_, after := s.nearest(i, 1)
	return before && after
}

// nearest returns the baseline's reading nearest to reading i in a direction, without i itself.
func (s *Session) nearest(i, step int) (Reading, bool) {
	for j := i + step; j >= 0 && j < len(s.Readings); j += step {
		if s.Readings[j].Baseline {
			return s.Readings[j], true
		}
	}
	return Reading{}, false
}

// baselineAt returns the baseline's energy and time at reading i, without reading i itself.
func (s *Session) baselineAt(i int) (joules, seconds float64, ok bool) {
	a, before := s.nearest(i, -1)
	b, after := s.nearest(i, 1)
	switch {
	case !before && !after:
		return 0, 0, false
	case !before:
		a = b
	case !after:
		b = a
	}
	share := 0.5
	if span := b.Begin - a.Begin; span > 0 {
		share = (s.Readings[i].Begin - a.Begin) / span
	}
	between := func(p, q float64) float64 { return math.Exp(math.Log(p)*(1-share) + math.Log(q)*share) }
	return between(a.PerExecution, b.PerExecution), between(a.Seconds, b.Seconds), true
}

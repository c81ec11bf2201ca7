package cost

import (
	"errors"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// A response is a list of relative clocks at activities of 0, knot, 2·knot, …
const (
	knot  = 0.1
	knots = 14
)

// activity returns the activity of a point: its dynamic energy at the baseline's clock, relative to the baseline's.
// If multipliers are the bottleneck, the clock is the inverse of the time, which is measured more accurately.
func (p *PowerLaw) activity(s *Series, o *Observation) float64 {
	w, static := s.Baseline.Watts, p.Static.Usual
	clock := o.Clock
	if !s.Cold {
		clock = 1 / o.Time
	}
	return (float64(w*o.Energy) - float64(static*o.Time)) / (w - static) / elementary.Pow(clock, p.ClockExponent.Usual-1)
}

// energyAt returns the relative energy, time and clock at an activity. A card at its power cap changes its clock.
func (p *PowerLaw) energyAt(s *Series, activity float64) (energy, time, clock float64) {
	clock, time = s.clockAt(activity), 1
	if !s.Cold {
		time = 1 / clock
	}
	w, static := s.Baseline.Watts, p.Static.Usual
	return (float64(activity*(w-static)*elementary.Pow(clock, p.ClockExponent.Usual-1)) + float64(static*time)) / w, time, clock
}

// clockAt interpolates the relative clock linearly between the knots.
func (s *Series) clockAt(activity float64) float64 {
	at := max(0, min(activity/knot, knots-1))
	i := min(int(at), knots-2)
	f := at - float64(i)
	return float64(s.Response[i]*(1-f)) + float64(s.Response[i+1]*f)
}

// respond computes a series' response from its points. The value at each knot is that of a straight line through the
// points around the knot. The response is then made to fall everywhere and to be 1 for the baseline.
func (p *PowerLaw) respond(s *Series) {
	const width = 0.05
	type point struct{ a, clock float64 }
	points := []point{{1, 1}}
	for i := range s.Points {
		o := &s.Points[i]
		clock := o.Clock
		if !s.Cold {
			clock = 1 / o.Time
		}
		points = append(points, point{p.activity(s, o), clock})
	}
	s.Response = make([]float64, knots)
	for i := range s.Response {
		at := float64(float64(i) * knot)
		var n, x, y, xx, xy float64
		for _, p := range points {
			d := (p.a - at) / width
			w := elementary.Exp(-d*d/2) + 1e-6/(1+float64(d*d))
			n, x, y, xx, xy = n+w, x+float64(w*p.a), y+float64(w*p.clock), xx+float64(w*p.a*p.a), xy+float64(w*p.a*p.clock)
		}
		s.Response[i] = y / n
		if v := xx/n - x/n*x/n; v > 1e-4 {
			slope := (xy/n - x/n*y/n) / v
			s.Response[i] += float64(max(-1, min(0, slope)) * (at - x/n))
		}
	}
	for i := knots - 2; i >= 0; i-- {
		s.Response[i] = max(s.Response[i], s.Response[i+1])
	}
	one := s.clockAt(1)
	for i := range s.Response {
		s.Response[i] = math.Round(s.Response[i]/one*1e5) / 1e5
	}
}

func (s *Series) validResponse() error {
	if len(s.Response) != knots {
		return errors.New("the measured response has the wrong number of values")
	}
	for _, v := range s.Response {
		if !(v > 0.1 && v < 10) {
			return errors.New("the measured response has a ratio of clocks that is not between 0.1 and 10")
		}
	}
	return nil
}

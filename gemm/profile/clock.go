package profile

import (
	"errors"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Sync says how the card's clock goes with the host's.
type Sync struct {
	Groups int `json:"groups"` // of readings; the quickest of each counts
	// Delay that was taken off a reading: half of its round trip. This is the median.
	Delay time.Duration `json:"-"`
	// Drift is by how much the card's clock goes fast, in parts per million.
	Drift float64 `json:"drift_ppm"`
	// Residual is the standard deviation of the readings about the line.
	Residual time.Duration `json:"-"`
	// Launch is how long after it was given to the card work began: the median.
	Launch time.Duration `json:"-"`

	card, host time.Duration // a moment by both
	pace       float64       // of the host's clock by the card's
}

// errNoClock means that the card's clock was never read.
var errNoClock = errors.New("the card's clock was not read")

// synchronise lays a line through the quickest reading of each group. A moment is known to within half
// of its round trip, so readings weigh by its inverse square.
func synchronise(groups [][]cuda.ClockReading) (*Sync, error) {
	var card, host, weight, delay []float64
	s := &Sync{pace: 1}
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		r := quickest(g)
		trip := max(r.After-r.Before, time.Microsecond)
		at := r.After - trip/2
		if s.Groups == 0 {
			s.card, s.host = r.Card, at
		}
		s.Groups++
		card = append(card, (r.Card - s.card).Seconds())
		host = append(host, (at - s.host).Seconds())
		weight = append(weight, 1/(trip.Seconds()*trip.Seconds()))
		delay = append(delay, trip.Seconds()/2)
	}
	if s.Groups == 0 {
		return nil, errNoClock
	}
	s.Delay = seconds(stats.Median(delay))
	if s.Groups < 3 { // two are no line that could be judged
		return s, nil
	}
	offset, pace := stat.LinearRegression(card, host, weight, false)
	if pace <= 0 || math.IsNaN(pace) {
		return nil, errors.New("the card's clock stands still or runs backwards")
	}
	s.host += seconds(offset)
	s.pace, s.Drift = pace, 1e6*(1/pace-1)
	sum, all := 0.0, 0.0
	for i := range card {
		off := host[i] - offset - pace*card[i]
		sum += weight[i] * off * off
		all += weight[i]
	}
	s.Residual = seconds(math.Sqrt(sum / all))
	return s, nil
}

// Host is a moment of the card's clock by the host's.
func (s *Sync) Host(card time.Duration) time.Duration {
	return s.host + time.Duration(math.Round(s.pace*float64(card-s.card)))
}

func quickest(g []cuda.ClockReading) cuda.ClockReading {
	best := g[0]
	for _, r := range g[1:] {
		if r.After-r.Before < best.After-best.Before {
			best = r
		}
	}
	return best
}

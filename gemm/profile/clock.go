package profile

import (
	"errors"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// ClockSync relates the card's clock to the host's (CPU–GPU time synchronisation).
type ClockSync struct {
	Groups int `json:"groups"` // number of groups of readings; only the fastest reading of each group is used
	// Drift is the card clock's rate error relative to the host's clock, in parts per million. It is positive if the
	// card's clock runs fast.
	Drift float64 `json:"drift_ppm"`
	// Delay is the median delay that was subtracted from the readings. A reading's delay is half of its round trip.
	Delay Seconds `json:"delay_seconds"`
	// Residual is the standard deviation of the readings from the fitted line.
	Residual Seconds `json:"residual_seconds"`
	// Launch is the median time from the launch of the work, by the host, to its start on the card.
	Launch Seconds `json:"launch_seconds"`

	card, host time.Duration // the same moment by both clocks
	slope      float64       // host seconds per card second
}

// errNoClock means that the card's clock was never read.
var errNoClock = errors.New("the card's clock was not read")

// synchronise fits a line through the fastest reading of each group. A reading is uncertain by half of its round trip,
// so its weight is the inverse square of the round trip.
func synchronise(groups [][]cuda.ClockReading) (*ClockSync, error) {
	var card, host, weight, delay []float64
	s := &ClockSync{slope: 1}
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
	s.Delay = stitch.Of(stats.Median(delay))
	if s.Groups < 3 { // a line through two points has no residual
		return s, nil
	}
	offset, slope := stat.LinearRegression(card, host, weight, false)
	if slope <= 0 || math.IsNaN(slope) {
		return nil, errors.New("the card's clock stops or runs backwards")
	}
	s.host += stitch.Of(offset).Duration()
	s.slope, s.Drift = slope, 1e6*(1/slope-1)
	sum, all := 0.0, 0.0
	for i := range card {
		off := host[i] - offset - slope*card[i]
		sum += weight[i] * off * off
		all += weight[i]
	}
	s.Residual = stitch.Of(math.Sqrt(sum / all))
	return s, nil
}

// Host converts a time of the card's clock to the host's clock.
func (s *ClockSync) Host(card time.Duration) time.Duration {
	return s.host + time.Duration(math.Round(s.slope*float64(card-s.card)))
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

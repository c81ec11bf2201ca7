package profile

import (
	"math"
	"time"
)

// After is what a product draws right after another, against its own steady power alone.
type After struct {
	Product int `json:"product"` // of the result's, from 0
	Other   int `json:"other"`   // that ran before it
	// Watts of the first stretch after the other, and what is drawn alone at the end of the profile,
	// with their intervals.
	Over      time.Duration `json:"-"` // the stretch: 50 ms, or the resolution
	Watts     float64       `json:"watts"`
	Low       float64       `json:"low"`
	High      float64       `json:"high"`
	Alone     float64       `json:"alone_watts"`
	AloneLow  float64       `json:"alone_low"`
	AloneHigh float64       `json:"alone_high"`
	// Ratio of the two, with its interval.
	Ratio    float64    `json:"ratio"`
	Interval [2]float64 `json:"interval"`
	// Steady is whether the power alone was.
	Steady bool `json:"steady"`
}

// afterwards is how long a product counts as having just begun.
const afterwards = 50 * time.Millisecond

// after compares each second leg with the same product's first leg, in the other profile.
func (r *Result) after() {
	for i := range r.Profiles {
		follows, alone := &r.Profiles[i], &r.Profiles[len(r.Profiles)-1-i]
		if len(follows.Legs) < 2 || follows.Curve == nil || alone.Curve == nil {
			continue
		}
		leg, first := follows.Legs[1], alone.Legs[0]
		a := After{Product: leg.Product, Other: follows.Legs[0].Product, Steady: alone.Steady.SSP.Found}
		a.Over = min(max(afterwards, follows.Curve.ResolutionAt(leg.Begin)), leg.End-leg.Begin)
		a.Watts, a.Low, a.High = follows.Curve.Mean(leg.Begin, leg.Begin+a.Over)
		from := first.End - first.End/10
		if a.Steady {
			from = min(from, alone.Steady.SSP.At)
		}
		a.Alone, a.AloneLow, a.AloneHigh = alone.Curve.Mean(from, first.End)
		if a.Alone > 0 {
			a.Ratio = a.Watts / a.Alone
			half := a.Ratio * math.Hypot((a.High-a.Low)/2/a.Watts, (a.AloneHigh-a.AloneLow)/2/a.Alone)
			a.Interval = [2]float64{a.Ratio - half, a.Ratio + half}
		}
		r.After = append(r.After, a)
	}
}

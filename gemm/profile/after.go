package profile

import (
	"math"
	"time"
)

// After is what a product draws right after another, against its own steady power alone (FinGraV, fig. 9).
type After struct {
	Product int `json:"product"` // of the result's, from 0
	Other   int `json:"other"`   // that ran before it
	// Over is the stretch from the product's start that watts are the mean of: 50 ms, or the curve's resolution, or
	// all of a shorter leg. Where the leg is shorter than the resolution nothing that follows is known.
	Over time.Duration `json:"-"`
	// Watts right after the other, with their interval.
	Watts float64 `json:"watts,omitempty"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	// Alone is steady power (SSP) of the product alone, from its finding to the end; 0 where it was not found:
	// power that swings would be compared with whatever moment of the swing the end is.
	Alone     float64 `json:"alone_watts,omitempty"`
	AloneLow  float64 `json:"alone_low,omitempty"`
	AloneHigh float64 `json:"alone_high,omitempty"`
	// Ratio of the two, with its interval; 0 where either is not known.
	Ratio    float64    `json:"ratio,omitempty"`
	Interval [2]float64 `json:"interval,omitzero"`
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
		if leg.Product != first.Product {
			continue
		}
		a := After{Product: leg.Product, Other: follows.Legs[0].Product}
		length := leg.End - leg.Begin
		a.Over = max(min(afterwards, length), follows.Curve.ResolutionAt(leg.Begin))
		if a.Over <= length {
			a.Watts, a.Low, a.High = follows.Curve.Mean(leg.Begin, leg.Begin+a.Over)
		}
		if ssp := alone.Steady.SSP; ssp.Found {
			a.Alone, a.AloneLow, a.AloneHigh = alone.Curve.Mean(ssp.At, first.End)
		}
		if a.Watts > 0 && a.Alone > 0 {
			a.Ratio = a.Watts / a.Alone
			half := a.Ratio * math.Hypot((a.High-a.Low)/2/a.Watts, (a.AloneHigh-a.AloneLow)/2/a.Alone)
			a.Interval = [2]float64{a.Ratio - half, a.Ratio + half}
		}
		r.After = append(r.After, a)
	}
}

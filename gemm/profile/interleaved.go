package profile

import (
	"math"
	"slices"
)

// Interleaved compares a product's power right after another product with its own steady power alone (FinGraV, fig. 9).
type Interleaved struct {
	Product int `json:"product"` // index into the result's products
	Other   int `json:"other"`   // the product that ran before it
	// Watts is the power right after the other product, with the ends of its 95 % interval. If the segment is shorter
	// than the resolution, Watts and all later fields are unknown.
	Watts float64 `json:"watts,omitempty"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	// Alone is the steady power (SSP) of the product alone, averaged while power stays steady. It is 0 if power was not
	// steady: the ratio to an oscillating power would depend on the segment's end.
	Alone     float64 `json:"alone_watts,omitempty"`
	AloneLow  float64 `json:"alone_low,omitempty"`
	AloneHigh float64 `json:"alone_high,omitempty"`
	// Ratio is Watts divided by Alone, with its 95 % interval. It is 0 if Watts or Alone is unknown.
	Ratio    float64    `json:"ratio,omitempty"`
	Interval [2]float64 `json:"interval,omitzero"`
	// Over is the averaging time of Watts, from the product's start: 50 ms or the trace's resolution, whichever is
	// longer, and at most the whole segment.
	Over Seconds `json:"over_seconds"`
}

// interleave compares each second segment with the profile in which the same product is the first segment.
func (r *Result) interleave() {
	for i := range r.Profiles {
		follows := &r.Profiles[i]
		if len(follows.Segments) < 2 || follows.Trace == nil {
			continue
		}
		second := follows.Segments[1]
		own := slices.IndexFunc(r.Profiles, func(p Profile) bool {
			return p.Trace != nil && p.Segments[0].Product == second.Product
		})
		if own < 0 {
			continue
		}
		alone := &r.Profiles[own]
		first := alone.Segments[0]
		a := Interleaved{Product: second.Product, Other: follows.Segments[0].Product}
		length := second.End - second.Begin
		a.Over = max(min(EarlyTime, length), follows.Trace.ResolutionAt(second.Begin))
		if a.Over <= length {
			a.Watts, a.Low, a.High = follows.Trace.Mean(second.Begin, second.Begin+a.Over)
		}
		if ssp := alone.Steady.SSP; ssp.Found {
			a.Alone, a.AloneLow, a.AloneHigh = alone.Trace.Mean(ssp.At, min(ssp.Until, first.End))
		}
		if a.Watts > 0 && a.Alone > 0 {
			a.Ratio = a.Watts / a.Alone
			half := a.Ratio * math.Hypot((a.High-a.Low)/2/a.Watts, (a.AloneHigh-a.AloneLow)/2/a.Alone)
			a.Interval = [2]float64{a.Ratio - half, a.Ratio + half}
		}
		r.Interleaved = append(r.Interleaved, a)
	}
}

package measure

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Spread is the range of figures among cards that ran the same load. A figure is absent if it is unknown for any card.
type Spread struct {
	Name           string `json:"name"`
	RelativeEnergy *Range `json:"relative_energy,omitempty"`
	RelativeTime   *Range `json:"relative_time,omitempty"`
	// Differ is true if the cards' energy ratios differ by more than their intervals explain. For identical cards,
	// Differ is true by chance in one run of twenty.
	Differ      *bool  `json:"differ,omitempty"`
	Joules      *Range `json:"joules,omitempty"` // joules per pass
	Watts       *Range `json:"watts,omitempty"`
	Seconds     *Range `json:"seconds,omitempty"` // seconds per pass
	Clock       *Range `json:"clock_mhz,omitempty"`
	Temperature *Range `json:"temperature_c,omitempty"`
}

// Range is the smallest and the largest value among cards, with the cards' names.
type Range struct {
	Smallest     float64 `json:"smallest"`
	Largest      float64 `json:"largest"`
	SmallestCard string  `json:"smallest_card"`
	LargestCard  string  `json:"largest_card"`
}

// rangeOf returns the range of the cards' values; nil if any value is not above 0.
func rangeOf(names []string, values []float64) *Range {
	r := Range{Smallest: math.Inf(1), Largest: math.Inf(-1)}
	for i, v := range values {
		if !(v > 0) {
			return nil
		}
		if v < r.Smallest {
			r.Smallest, r.SmallestCard = v, names[i]
		}
		if v > r.Largest {
			r.Largest, r.LargestCard = v, names[i]
		}
	}
	return &r
}

// spreadsOf compares the results of cards with these names that ran the same loads.
func spreadsOf(names []string, cards [][]power.Comparison) []Spread {
	list := make([]Spread, len(cards[0]))
	for load := range list {
		of := func(value func(power.Comparison) float64) *Range {
			values := make([]float64, len(cards))
			for i, c := range cards {
				values[i] = value(c[load])
			}
			return rangeOf(names, values)
		}
		list[load] = Spread{
			Name:           cards[0][load].Name,
			RelativeEnergy: of(func(c power.Comparison) float64 { return c.RelativeEnergy }),
			RelativeTime:   of(func(c power.Comparison) float64 { return c.RelativeTime }),
			Differ:         differ(cards, load),
			Joules:         of(func(c power.Comparison) float64 { return c.Joules }),
			Watts:          of(func(c power.Comparison) float64 { return c.Watts }),
			Seconds:        of(func(c power.Comparison) float64 { return c.Seconds }),
			Clock:          of(func(c power.Comparison) float64 { return known(c.SMClock) }),
			Temperature:    of(func(c power.Comparison) float64 { return known(c.Temperature) }),
		}
	}
	return list
}

// known returns *v, or 0 if v is nil.
func known(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// differ is Cochran's Q test of the cards' ratios at 95 % (Biometrics 10, 1954). Q is the sum of the squared distances
// from the weighted mean, in standard errors. For two cards it is the usual test of a difference. The result is nil if
// any interval is unknown.
func differ(cards [][]power.Comparison, load int) *bool {
	var weight, mean float64
	weightOf := func(c power.Comparison) float64 {
		z := distuv.UnitNormal.Quantile(0.975)
		deviation := max((c.Interval[1]-c.Interval[0])/2/z, 1e-9) // an interval of width 0 is a coincidence
		return 1 / (deviation * deviation)
	}
	for _, c := range cards {
		if c[load].Interval == nil {
			return nil
		}
		w := weightOf(c[load])
		weight, mean = weight+w, mean+w*c[load].RelativeEnergy
	}
	mean /= weight
	q := 0.0
	for _, c := range cards {
		d := c[load].RelativeEnergy - mean
		q += weightOf(c[load]) * d * d
	}
	yes := q > distuv.ChiSquared{K: float64(len(cards) - 1)}.Quantile(0.95)
	return &yes
}

package measure

import (
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Total is one load on all cards together. A figure is absent if it is unknown for any card.
type Total struct {
	Name   string  `json:"name"`
	Joules float64 `json:"joules,omitempty"` // joules of one pass on every card
	Watts  float64 `json:"watts,omitempty"`  // total power of all cards
	// RelativeEnergy is Joules after/before. Its 95 % interval follows from the cards' intervals, whose errors are
	// independent: a drift of the shared air temperature cancels within each card's ratio.
	RelativeEnergy float64   `json:"relative_energy,omitempty"`
	Interval       []float64 `json:"interval,omitempty"`
	// RelativeTime is the number of passes per second of all cards together, before/after.
	RelativeTime float64   `json:"relative_time,omitempty"`
	TimeInterval []float64 `json:"time_interval,omitempty"`
}

// Loads returns the baseline, its copy and the variants, in this order.
func (r *Result) Loads() []power.Comparison {
	return append([]power.Comparison{{Summary: r.Baseline}, r.Null}, r.Variants...)
}

// totalsOf sums the results of cards that ran the same loads. The first load is the baseline.
func totalsOf(cards [][]power.Comparison) []Total {
	list := make([]Total, len(cards[0]))
	for i := range list {
		list[i] = total(cards, i)
	}
	return list
}

func total(cards [][]power.Comparison, load int) Total {
	t := Total{Name: cards[0][load].Name}
	joules, known := make([]float64, len(cards)), true
	for i, c := range cards {
		joules[i] = c[0].Joules
		t.Joules += c[load].Joules
		t.Watts += c[load].Watts
		known = known && c[load].Joules > 0
	}
	if !known {
		t.Joules = 0
	}
	if without(cards, func(c []power.Comparison) bool { return c[load].Watts > 0 }) {
		t.Watts = 0
	}
	if load == 0 || without(cards, func(c []power.Comparison) bool { return c[0].Joules > 0 && c[load].RelativeEnergy > 0 }) {
		return t
	}
	t.RelativeEnergy, t.Interval = weighed(cards, joules, func(c []power.Comparison) (float64, []float64) {
		return c[load].RelativeEnergy, c[load].Interval
	})
	if without(cards, func(c []power.Comparison) bool { return c[0].Seconds > 0 && c[load].RelativeTime > 0 }) {
		return t
	}
	// The cards' pass rates add up, weighted by the rates before. Time is the inverse of the rate.
	rates := make([]float64, len(cards))
	for i, c := range cards {
		rates[i] = 1 / c[0].Seconds
	}
	rate, interval := weighed(cards, rates, func(c []power.Comparison) (float64, []float64) {
		return inverse(c[load].RelativeTime, c[load].TimeInterval)
	})
	t.RelativeTime, t.TimeInterval = inverse(rate, interval)
	return t
}

// without reports whether has is false for any card.
func without(cards [][]power.Comparison, has func([]power.Comparison) bool) bool {
	for _, c := range cards {
		if !has(c) {
			return true
		}
	}
	return false
}

// weighed returns the weighted mean of the cards' ratios. It also returns the interval if all ratios have one.
func weighed(cards [][]power.Comparison, weights []float64, ratio func([]power.Comparison) (float64, []float64)) (mean float64, interval []float64) {
	var sum, square float64
	all := true
	for i, c := range cards {
		r, own := ratio(c)
		sum, mean = sum+weights[i], mean+weights[i]*r
		if own == nil {
			all = false
			continue
		}
		half := weights[i] * (own[1] - own[0]) / 2
		square += half * half
	}
	mean /= sum
	if half := math.Sqrt(square) / sum; all {
		interval = []float64{mean - half, mean + half}
	}
	return mean, interval
}

func inverse(ratio float64, interval []float64) (float64, []float64) {
	if interval == nil {
		return 1 / ratio, nil
	}
	return 1 / ratio, []float64{1 / interval[1], 1 / interval[0]}
}

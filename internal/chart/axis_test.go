package chart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTicks: on any axis, places rise with the values from 0 to 1. There are a few ticks, with correct labels that do
// not touch.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom([]int{0, 2, 10}).Draw(t, "base")
		low := rapid.Float64Range(0, 1000).Draw(t, "low")
		values := []float64{low, low + 1 + 10*low*rapid.Float64Range(0, 3).Draw(t, "range")}
		switch {
		case base == 0:
			values = append(values, -low)
		case base == 10:
			values[0] = max(values[0], 1e-6)
			values[1] *= math.Pow10(rapid.IntRange(0, 9).Draw(t, "decades"))
		}
		if rapid.Bool().Draw(t, "zero") {
			values = append(values, 0)
		}
		r := Axis{Log: base}.of(values)
		slices.Sort(values)
		last := -1.0
		for _, v := range slices.Compact(values) {
			p := r.place(v)
			if p <= last || p < -1e-9 || p > 1+1e-9 {
				t.Fatalf("%v stands at %v", v, p)
			}
			last = p
		}
		if n := len(r.ticks); n < 1 || n > mostTicks+1 {
			t.Fatalf("%d ticks: %v", n, r.ticks)
		}
		right := math.Inf(-1)
		for _, tick := range r.ticks {
			half, at := widthOf(tick.label)/2, across*r.place(tick.value)
			if at-half < right {
				t.Fatalf("the label %s touches the one before: %v", tick.label, r.ticks)
			}
			if p := r.place(tick.value); p < -1e-9 || p > 1+1e-9 || strings.Trim(tick.label, "-0.") == "" && tick.label[0] == '-' {
				t.Fatalf("tick %s at %v", tick.label, p)
			}
			right = at + half
		}
	})
}

func TestDecades(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{0.0005, 2}, "0.001 0.01 0.1 1"},
		{[]float64{1, 10}, "1 2 5 10"},
		{[]float64{300, 700}, "300 400 500 600 700"},
		{[]float64{0.02, 1}, "0.02 0.05 0.1 0.2 0.5 1"},
		{[]float64{650, 690}, "650 660 670 680 690"},
		{[]float64{1e4, 1e8}, "10000 10⁵ 10⁶ 10⁷ 10⁸"},
		{[]float64{0, 1, 100}, "0 1 10 100"},
		{[]float64{1e-9, 1e9}, "10⁻⁹ 0.0001 10 10⁶"},
	} {
		var labels []string
		for _, tick := range (Axis{Log: 10}).of(c.values).ticks {
			labels = append(labels, tick.label)
		}
		if have := strings.Join(labels, " "); have != c.want {
			t.Errorf("%v: ticks %q, want %q", c.values, have, c.want)
		}
	}
}

// TestTicksOfAnyValues: values that differ only by rounding, or by as much as possible, have few ticks.
func TestTicksOfAnyValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64().Draw(t, "value")
		high := rapid.SampledFrom([]float64{low, math.Nextafter(low, math.Inf(1)), low * (1 + 1e-12), low * (1 + 1e-8), -low, 0}).Draw(t, "other")
		for _, log := range []int{0, 2, 10} {
			r := Axis{Log: log}.of([]float64{low, high})
			if len(r.ticks) > 2*mostTicks || !(r.low < r.high) {
				t.Fatalf("base %d: %v to %v: %d ticks from %v to %v", log, low, high, len(r.ticks), r.low, r.high)
			}
		}
	})
}

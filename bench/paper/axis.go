package paper

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// axis is a scale between two values, and its ticks.
type axis struct {
	low, high float64 // in the coordinate that the scale is even in
	even      func(v float64) float64
	ticks     []tick
}

type tick struct {
	value float64
	label string
}

// place is 0 at the low end and 1 at the high one.
func (a axis) place(v float64) float64 { return (a.even(v) - a.low) / (a.high - a.low) }

// span of values; of none 0 to 1, and never empty.
func span(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	switch {
	case low > high:
		return 0, 1
	case low == high:
		return low - 0.5, high + 0.5
	}
	return low, high
}

// mostTicks of an axis.
const mostTicks = 6

// linear shows all values, with ticks at multiples of 1, 2 or 5 times a power of ten.
func linear(values []float64) axis {
	low, high := span(values)
	step, decimals := 0.0, 0
search:
	for e := int(math.Floor(math.Log10(high-low))) - 1; ; e++ {
		for _, m := range []float64{1, 2, 5} {
			if step = m * math.Pow10(e); (high-low)/step < mostTicks {
				decimals = max(0, -e)
				break search
			}
		}
	}
	a := axis{low: low, high: high, even: func(v float64) float64 { return v }}
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		v := i*step + 0 // no negative zero
		a.ticks = append(a.ticks, tick{v, strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return a
}

// logarithmic shows all values, which are not negative, with ticks at powers of two. Zero, if it is
// among them, lies apart from the smallest of the others.
func logarithmic(values []float64) axis {
	var logs []float64
	zero := false
	for _, v := range values {
		if v == 0 {
			zero = true
		} else {
			logs = append(logs, math.Log2(v))
		}
	}
	low, high := span(logs)
	step := math.Ceil((high - low) / (mostTicks - 2))
	first, origin := low, low-step
	if zero {
		low = origin
	}
	a := axis{low: low, high: high, even: func(v float64) float64 {
		if v == 0 {
			return origin
		}
		return math.Log2(v)
	}}
	if zero {
		a.ticks = append(a.ticks, tick{0, "0"})
	}
	for e := math.Ceil(first); e <= high; e += step {
		a.ticks = append(a.ticks, tick{math.Exp2(e), "2" + superscript(int(e))})
	}
	return a
}

var superscripts = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

func superscript(n int) string { return superscripts.Replace(fmt.Sprint(n)) }

package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Axis is an axis that spans all values.
type Axis struct {
	Label string
	// Log is the base of a logarithmic axis, 2 or 10. A value of zero is drawn left of the smallest other value;
	// negative values are not drawn. Default 0: the axis is linear.
	Log int
	// With are values that the axis always shows, such as 0 W.
	With []float64
}

// ruler is a scale between two values, with its ticks.
type ruler struct {
	low, high float64 // in the coordinate of even
	even      func(v float64) float64
	ticks     []tick
}

type tick struct {
	value float64
	label string
}

// place maps a value to 0 at the low end of the axis and 1 at the high end.
func (r ruler) place(v float64) float64 { return (r.even(v) - r.low) / (r.high - r.low) }

// shows reports whether a value can be drawn.
func (r ruler) shows(v float64) bool { return finite(v) && finite(r.even(v)) }

// of returns the ruler of an axis for values.
func (a Axis) of(values []float64) ruler {
	var shown []float64
	for _, v := range append(a.With[:len(a.With):len(a.With)], values...) {
		if finite(v) && (a.Log == 0 || v >= 0) {
			shown = append(shown, v)
		}
	}
	if a.Log == 0 {
		return linear(shown)
	}
	return logarithmic(shown, a.Log)
}

// span returns the range of values; 0 to 1 if there are none. A range within the rounding errors of the largest
// value, or of unit if that is larger, is widened to have ticks.
func span(values []float64, unit float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if low > high {
		return 0, 1
	}
	const same = 1e-9
	size := max(unit, math.Abs(low), math.Abs(high))
	if high-low <= same*size {
		half := max(0.5, same*size)
		return low - half, high + half
	}
	return low, high
}

const (
	mostTicks = 6   // largest number of ticks on an axis
	across    = 350 // width in pixels of an axis with another panel beside it
)

// linear returns a ruler with ticks at multiples of 1, 2 or 5 times a power of ten.
func linear(values []float64) ruler {
	low, high := span(values, 0)
	return ruler{low: low, high: high, even: func(v float64) float64 { return v }, ticks: multiples(low, high)}
}

func multiples(low, high float64) (ticks []tick) {
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
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		v := i*step + 0 // no negative zero
		ticks = append(ticks, tick{v, strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return ticks
}

// logarithmic returns a ruler for values from 0 on.
func logarithmic(values []float64, base int) ruler {
	log := math.Log2
	if base == 10 {
		log = math.Log10
	}
	var logs []float64
	zero := false
	for _, v := range values {
		if v == 0 {
			zero = true
		} else {
			logs = append(logs, log(v))
		}
	}
	low, high := span(logs, 1) // values that agree to nine digits count as equal
	step := math.Ceil((high - low) / (mostTicks - 2))
	first, origin := low, low-step
	if base == 10 {
		origin = low - (high-low)/(mostTicks-1) // a step may span several decades
	}
	if zero {
		low = origin
	}
	r := ruler{low: low, high: high, even: func(v float64) float64 {
		if v == 0 && zero {
			return origin
		}
		return log(v)
	}}
	if zero {
		r.ticks = append(r.ticks, tick{0, "0"})
	}
	if base == 10 {
		r.ticks = append(r.ticks, decades(first, high, step, across/(high-low), mostTicks-len(r.ticks))...)
		return r
	}
	for e := math.Ceil(first); e <= high; e += step {
		r.ticks = append(r.ticks, tick{math.Exp2(e), "2" + superscript(int(e))})
	}
	if len(r.ticks) < 2 {
		r.ticks = multiples(math.Exp2(low), math.Exp2(high))
	}
	return r
}

// decades returns at most most ticks between two powers of ten. They are at every digit if there is room, else at 1,
// 2 and 5, else at powers of ten. An axis shorter than a digit has multiples of a step. pixels is the width of a
// decade.
func decades(low, high, step, pixels float64, most int) []tick {
	const edge = 1e-9
	for _, digits := range [][]float64{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 5}, {1}} {
		var ticks []tick
		for e := math.Floor(low); e <= high+edge && len(ticks) <= most; e++ {
			for _, d := range digits {
				if at := e + math.Log10(d); at >= low-edge && at <= high+edge {
					ticks = append(ticks, tick{d * math.Pow10(int(e)), decimal(d, int(e))})
				}
			}
		}
		if len(ticks) < 2 {
			return multiples(math.Pow(10, low), math.Pow(10, high))
		}
		if len(ticks) <= most && apart(ticks, pixels) {
			return ticks
		}
	}
	var ticks []tick
	for e := math.Ceil(low - edge); e <= high+edge; e += step {
		ticks = append(ticks, tick{math.Pow10(int(e)), decimal(1, int(e))})
	}
	return ticks
}

// apart reports whether no label touches the next one on a logarithmic axis.
func apart(ticks []tick, pixels float64) bool {
	for i, t := range ticks[1:] {
		if pixels*math.Log10(t.value/ticks[i].value) < (widthOf(ticks[i].label)+widthOf(t.label))/2 {
			return false
		}
	}
	return true
}

// decimal formats a digit times a power of ten.
func decimal(digit float64, exponent int) string {
	if exponent >= -4 && exponent < 5 {
		return strconv.FormatFloat(digit*math.Pow10(exponent), 'f', max(0, -exponent), 64)
	}
	text := "10" + superscript(exponent)
	if digit != 1 {
		text = fmt.Sprint(digit) + "·" + text
	}
	return text
}

var superscripts = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

func superscript(n int) string { return superscripts.Replace(fmt.Sprint(n)) }

package rounding

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// lattice describes a format's values. In the binade of 2^e they are the multiples of 2^max(e−mant, floor), from
// bottom to top.
type lattice struct {
	mant, floor int
	top, bottom float32
	sign        uint32 // bit of a float32 that zeros keep
}

func latticeOf(f weights.Format) lattice {
	if !f.IsFloat() { // integers, evenly spaced in every binade
		return lattice{1 << 10, 0, 127, -128, 0}
	}
	top := f.Value(f.MaxFinite)
	return lattice{f.MantBits, 1 - f.Bias - f.MantBits, top, -top, 1 << 31}
}

// coarsest is the exponent of a step larger than twice any value.
const coarsest = 200

func (l lattice) clamp(t float32) float32 { return min(max(t, l.bottom), l.top) }

// spacing returns the exponent of the distance between values at t.
func (l lattice) spacing(t float32) int {
	e := int(math.Float32bits(t)>>23&0xFF) - 127 // too low for a subnormal; then floor decides
	return max(e-l.mant, l.floor)
}

// round returns the multiple of 2^m nearest to t, ties to even. t is clamped, and m is at least the spacing at t. A
// multiple out of range becomes the last one in range. Zero is always positive.
func (l lattice) round(t float32, m int) float32 {
	// A number whose last place is 2^m, with an even mantissa.
	c := math.Float64frombits(uint64(1023+52+m)<<52 | 1<<51)
	r := float32(float64(t) + c - c)
	if r <= l.top && r >= l.bottom {
		return r
	}
	limit := l.top
	if t < 0 {
		limit = l.bottom
	}
	return float32(math.Ldexp(math.Trunc(math.Ldexp(float64(limit), -m)), m)) + 0
}

// signed gives a zero the sign of t, if the format has signed zeros.
func (l lattice) signed(v, t float32) float32 {
	return math.Float32frombits(math.Float32bits(v) | math.Float32bits(t)&l.sign)
}

package sgemm

import "math"

// fma is a·b+c, rounded once to float32, as the kernel's instruction does it.
func fma(a, b, c float32) float32 {
	sum := fma64(a, b, c)
	if mayBeHalfway(sum) {
		sum = roundToOdd(float64(a)*float64(b), float64(c), sum)
	}
	return float32(sum)
}

// fma64 is a·b+c rounded to float64: the product of two float32 is exact in it.
func fma64(a, b, c float32) float64 { return float64(a)*float64(b) + float64(c) }

// mayBeHalfway says whether rounding a sum once more, to float32, could go wrong: only where the
// first rounding ended halfway between two float32. Then, also among subnormal numbers, the lowest
// 28 bits are zero.
func mayBeHalfway(sum float64) bool { return math.Float64bits(sum)<<36 == 0 }

// roundToOdd returns a sum that keeps, in its lowest bit, on which side of the rounded sum the exact one
// lies; sum is x+y rounded to nearest, and even. TwoSum (Knuth) gives the error.
func roundToOdd(x, y, sum float64) float64 {
	t := sum - x
	err := (x - (sum - t)) + (y - t)
	if err == 0 || math.IsNaN(err) { // NaN: sum is infinite or NaN
		return sum
	}
	bits := math.Float64bits(sum)
	if (err > 0) == (sum > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

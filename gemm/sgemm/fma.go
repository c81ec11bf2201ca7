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

// mayBeHalfway reports whether rounding a sum a second time, to float32, could give a wrong result. This happens only if the
// first rounding ended halfway between two float32. The lowest 28 bits are then zero, also for subnormal numbers.
func mayBeHalfway(sum float64) bool { return math.Float64bits(sum)<<36 == 0 }

// roundToOdd returns a sum whose lowest bit shows the side of the rounded sum on which the exact sum lies. sum is x+y rounded to
// nearest, ties to even. TwoSum (Knuth) gives the error.
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

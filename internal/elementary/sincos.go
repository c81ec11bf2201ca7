package elementary

import "math"

// Sincos returns the sine and the cosine of x in radians. Errors are below 1e-15 for |x| up to 1e6, and grow in
// proportion to x beyond.
func Sincos(x float64) (sin, cos float64) {
	// π/2 in three parts. The first two have 33 bits, so their products with quarters up to 2^20 are exact.
	const high, middle, low = 0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69
	if math.Abs(x) > 1<<50 || x != x {
		return math.Sincos(x)
	}
	quarters := math.RoundToEven(x * (2 / math.Pi))
	r := x - float64(quarters*high) - float64(quarters*middle) - float64(quarters*low)
	square := float64(r * r)
	sin, cos = float64(r*horner(sinTerms[:], square)), horner(cosTerms[:], square)
	switch int64(quarters) & 3 {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}

// Taylor coefficients of sin r/r and of cos r, in r².
var (
	sinTerms = [...]float64{1, -1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800, -1. / 1307674368000, 1. / 355687428096000}
	cosTerms = [...]float64{1, -1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000}
)

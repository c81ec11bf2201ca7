package elementary

import "math"

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return math.Log(x) // NaN or ±Inf
	}
	m, e := split(x)
	return float64(float64(e)*ln2High) + (float64(float64(e)*ln2Low) + logNear(m))
}

// Log2 returns the binary logarithm of x. It is exact for powers of two.
func Log2(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return math.Log2(x) // NaN or ±Inf
	}
	m, e := split(x)
	return float64(e) + float64(logNear(m)*(1/math.Ln2))
}

// Log10 returns the decimal logarithm of x.
func Log10(x float64) float64 { return Log(x) * (1 / math.Ln10) }

// Log1p returns the natural logarithm of 1 + x. Near x = 0, it is accurate to the last digits.
func Log1p(x float64) float64 {
	switch y := 1 + x; {
	case y == 1:
		return x
	case math.Abs(x) < 0.5:
		return Log(y) * (x / (y - 1)) // corrects the rounding of y (Kahan)
	default:
		return Log(y)
	}
}

// Pow returns x^y for x ≥ 0, with a relative error below 1e-15·(1 + |y·log2 x|). It is exact for y = ±1, and rounded
// once for y = ½.
func Pow(x, y float64) float64 {
	switch {
	case !(x > 0) || x > math.MaxFloat64 || y-y != 0 || y == 0:
		return math.Pow(x, y) // 0, 1, NaN or +Inf
	case y < 0:
		return 1 / Pow(x, -y)
	case y == 1:
		return x
	case y == 0.5:
		return math.Sqrt(x)
	}
	return Exp2(y * Log2(x))
}

// split returns x = m·2^e with m from √½ to √2.
func split(x float64) (m float64, e int) {
	m, e = math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	return m, e
}

// logNear returns the logarithm of m from √½ to √2, by the series of the inverse hyperbolic tangent.
func logNear(m float64) float64 {
	s := (m - 1) / (m + 1)
	return 2 * float64(s*horner(logTerms[:], float64(s*s)))
}

var logTerms = [...]float64{1, 1. / 3, 1. / 5, 1. / 7, 1. / 9, 1. / 11, 1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21}

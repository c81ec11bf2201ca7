package elementary

import "math"

// ln 2 in two parts. The first has 33 bits, so its products with exponents are exact.
const (
	ln2High = 0x1.62e42fefp-1
	ln2Low  = 0x1.473de6af278edp-34
)

// Exp returns e^x.
func Exp(x float64) float64 {
	switch {
	case x != x || x > 1000 || x < -1000:
		return math.Exp(x) // NaN, +Inf or 0
	}
	k := math.RoundToEven(x / math.Ln2)
	return math.Ldexp(expNear(x-float64(k*ln2High)-float64(k*ln2Low)), int(k))
}

// Exp2 returns 2^x.
func Exp2(x float64) float64 {
	if x != x || x > 1100 || x < -1200 {
		return math.Exp2(x) // NaN, +Inf or 0
	}
	k := math.RoundToEven(x)
	return math.Ldexp(expNear((x-k)*math.Ln2), int(k))
}

// Expm1 returns e^x − 1. Near x = 0, it is accurate to the last digits.
func Expm1(x float64) float64 {
	if !(math.Abs(x) < 0.3) {
		return Exp(x) - 1
	}
	return x * expSlope(x)
}

// expNear returns e^r for |r| ≤ ln 2/2.
func expNear(r float64) float64 { return 1 + float64(r*expSlope(r)) }

// expSlope returns (e^r − 1)/r for |r| < 0.35.
func expSlope(r float64) float64 { return horner(expTerms[:], r) }

// expTerms are the Taylor coefficients 1/1!, 1/2!, …
var expTerms = [...]float64{1, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800, 1. / 39916800,
	1. / 479001600, 1. / 6227020800, 1. / 87178291200}

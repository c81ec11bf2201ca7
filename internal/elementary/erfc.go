package elementary

import "math"

const (
	erfcNodes = 320 // from 0 to 10
	erfcSteps = 32  // nodes per unit
	erfcTerms = 9
)

// erfcTable has the Taylor coefficients of the complementary error function around each node.
var erfcTable = func() (t [erfcNodes + 1][erfcTerms]float64) {
	value := 2.0884875837625447570e-45 // erfc(10)
	for k := erfcNodes; k >= 0; k-- {
		series := erfcSeries(float64(k)/erfcSteps, value)
		t[k] = [erfcTerms]float64(series[:erfcTerms])
		value = horner(series[:], -1./erfcSteps)
	}
	return t
}()

// erfcSeries returns the Taylor coefficients of erfc around c. value is erfc(c). The derivatives of erfc are Hermite
// polynomials times −2/√π·exp(−c²).
func erfcSeries(c, value float64) (series [24]float64) {
	series[0] = value
	factor := -2 / math.Sqrt(math.Pi) * Exp(-float64(c*c))
	hermite, before := 1.0, 0.0
	for n := 1; n < len(series); n++ {
		factor /= float64(n)
		series[n] = factor * hermite
		hermite, before = float64(2*c*hermite)-float64(2*float64(n-1)*before), hermite
		factor = -factor
	}
	return series
}

// Erfc returns the complementary error function, 1 − erf x. The relative error is below 1e-14 for x < 3 and below
// 1e-9 up to 10. Beyond 10, where the function is below 1e-44, the result is 0.
func Erfc(x float64) float64 {
	a := math.Abs(x)
	if !(a < 10) {
		if a != a {
			return x
		}
		return 1 - math.Copysign(1, x)
	}
	k := int(float64(a*erfcSteps) + 0.5)
	y := horner(erfcTable[k][:], a-float64(float64(k)/erfcSteps))
	if x < 0 {
		return 2 - y
	}
	return y
}

package pattern

import "math"

// normals replaces each u, 0 < u < 1, by the quantile of the standard normal distribution at u, to about 15 digits.
// It is Wichura's algorithm AS 241 (PPND16): a rational function in the middle, and in the square root of the
// logarithm at the tails. The tails are computed last, so the many values in the middle do not wait for them.
// Products are converted before an addition, so no machine fuses the two.
func normals(u []float64) {
	var tails [run]uint8
	n := 0
	for i, p := range u {
		q := p - 0.5
		if math.Abs(q) > 0.425 {
			tails[n] = uint8(i)
			n++
			continue
		}
		r := 0.180625 - float64(q*q)
		u[i] = q * horner(r, &middleOver) / horner(r, &middleUnder)
	}
	for _, i := range tails[:n] {
		u[i] = tail(u[i])
	}
}

// tail returns a quantile outside the middle.
func tail(u float64) float64 {
	r := math.Sqrt(-ln(min(u, 1-u)))
	z := 0.0
	if r <= 5 {
		z = horner(r-1.6, &tailOver) / horner(r-1.6, &tailUnder)
	} else {
		z = horner(r-5, &farOver) / horner(r-5, &farUnder)
	}
	return math.Copysign(z, u-0.5)
}

// horner evaluates the polynomial with coefficients c, the constant first.
func horner(x float64, c *[8]float64) float64 {
	s := float64(c[7]*x) + c[6]
	s = float64(s*x) + c[5]
	s = float64(s*x) + c[4]
	s = float64(s*x) + c[3]
	s = float64(s*x) + c[2]
	s = float64(s*x) + c[1]
	return float64(s*x) + c[0]
}

// ln returns the natural logarithm of a positive normal number x = 2^e·m with m between √½ and √2. With s =
// (m-1)/(m+1), the logarithm of m is 2·artanh(s). The series ends at s^19.
func ln(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := (m - 1) / (m + 1)
	t, sum := s*s, 0.0
	for _, c := range inverseOdds {
		sum = float64(sum*t) + c
	}
	return float64(float64(e)*math.Ln2) + float64(2*s*sum)
}

var inverseOdds = [...]float64{1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1}

// Coefficients of AS 241: numerators and denominators.
var (
	middleOver = [8]float64{
		3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
		4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3,
	}
	middleUnder = [8]float64{
		1, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
		2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3,
	}
	tailOver = [8]float64{
		1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
		1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
	}
	tailUnder = [8]float64{
		1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
	}
	farOver = [8]float64{
		6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
		2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
	}
	farUnder = [8]float64{
		1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
		7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15,
	}
)

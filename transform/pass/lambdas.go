package pass

import "math"

// Lambdas returns the values of λ at which tuned passes are tried (see [Pass.Tuned]). The smallest λ loses less than
// any budget allows. The largest λ leaves only powers of two and zeros.
func Lambdas() []float64 {
	var list []float64
	for e := -17; e <= 3; e++ {
		list = append(list, math.Ldexp(1, e))
	}
	return list
}

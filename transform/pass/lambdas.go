package pass

import "math"

// Lambdas are the prices of error at which tuned passes are tried (see [Pass.Tuned]), from gentler than any budget
// asks for to where only powers of two and zeros are left.
func Lambdas() []float64 {
	var list []float64
	for e := -17; e <= 3; e++ {
		list = append(list, math.Ldexp(1, e))
	}
	return list
}

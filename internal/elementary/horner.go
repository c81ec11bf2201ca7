package elementary

// horner returns the value of a polynomial at x. The coefficients begin with the constant.
func horner(coefficients []float64, x float64) (y float64) {
	for i := len(coefficients) - 1; i >= 0; i-- {
		y = coefficients[i] + float64(y*x)
	}
	return y
}

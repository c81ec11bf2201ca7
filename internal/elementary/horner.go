package elementary

// horner is the value of a polynomial, whose coefficients start with the constant one.
func horner(coefficients []float64, x float64) (y float64) {
	for i := len(coefficients) - 1; i >= 0; i-- {
		y = coefficients[i] + float64(y*x)
	}
	return y
}

package forward

// addTo adds x to y.
func addTo(y, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += x[i]
	}
}

// scale multiplies by a number.
func scale(x []float32, by float32) {
	if by == 1 {
		return
	}
	for i := range x {
		x[i] *= by
	}
}

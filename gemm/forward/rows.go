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

// softcap replaces each x by cap·tanh(scale·x/cap), which stays within ±cap.
func softcap(row []float32, scale, cap float64) {
	slope := 2 * scale / cap
	for i, v := range row {
		// tanh u = 1 - 2/(e^2u + 1)
		row[i] = float32(cap - 2*cap/(exp(float64(slope*float64(v)))+1))
	}
}

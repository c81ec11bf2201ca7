package vector

// Softcap replaces each x by cap·tanh(scale·x/cap), which stays within ±cap.
func Softcap(row []float32, scale, cap float64) {
	slope := 2 * scale / cap
	for i, v := range row {
		// tanh u = 1 - 2/(e^2u + 1)
		row[i] = float32(cap - 2*cap/(Exp(float64(slope*float64(v)))+1))
	}
}

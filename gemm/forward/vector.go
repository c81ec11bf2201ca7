package forward

// The vector kernels compute whole vectors. Functions in Go compute the remaining elements, and all elements on
// machines without the kernels. Both have the same bits; only the sign and the payload of a NaN may differ.

// expScaled replaces each x by exp(scale·(x - largest)), for scale > 0 and no x above largest.
func expScaled(row []float32, scale, largest float32) {
	if n := len(row) / 8; vectors && n > 0 {
		expScaled8(&row[0], n, scale, largest, &exp2Table[0])
		row = row[8*n:]
	}
	expScaledGo(row, scale, largest)
}

// silu writes x·sigmoid(x) for each x of from, which may be to.
func silu(to, from []float32) {
	if n := len(from) / 8; vectors && n > 0 {
		silu8(&to[0], &from[0], n, &exp2Table[0])
		to, from = to[8*n:], from[8*n:]
	}
	for i, x := range from {
		to[i] = siluGo(x)
	}
}

// geluTanh writes x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³) for each x of from, which may be to.
func geluTanh(to, from []float32) {
	if n := len(from) / 8; vectors && n > 0 {
		gelu8(&to[0], &from[0], n, &exp2Table[0])
		to, from = to[8*n:], from[8*n:]
	}
	for i, x := range from {
		to[i] = geluTanhGo(x)
	}
}

// maximum is the largest element of a row that is not empty. It is NaN where the first is, and leaves out
// others that are.
func maximum(row []float32) float32 {
	most := row[0]
	if n := len(row) / 16; vectors && n > 0 {
		var lanes [16]float32
		for i := range lanes {
			lanes[i] = most
		}
		maximum16(&row[0], n, &lanes[0])
		row = row[16*n:]
		for _, v := range lanes {
			if v > most {
				most = v
			}
		}
	}
	for _, v := range row {
		if v > most {
			most = v
		}
	}
	return most
}

package vector

// ExpScaled replaces each x by exp(scale·(x - largest)), for scale > 0 and no x above largest.
func ExpScaled(row []float32, scale, largest float32) {
	if n := len(row) / 8; vectors && n > 0 {
		expScaled8(&row[0], n, scale, largest, &exp2Table[0])
		row = row[8*n:]
	}
	expScaledGo(row, scale, largest)
}

// Maximum returns the largest element of a row that is not empty. It returns NaN if the first element is NaN, and ignores other
// NaNs.
func Maximum(row []float32) float32 {
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

// InverseSums computes the inverse of each row's sum. A sum is one chain of additions in the row's order. Several rows are summed
// at the same time, so that additions overlap.
func InverseSums(inverse []float32, rows [][]float32) {
	if vectors && len(rows) >= 8 {
		for at := 0; at < len(rows); at += 8 {
			at = min(at, len(rows)-8) // the last eight rows may overlap earlier ones
			inverseSums8(inverse[at:], rows[at:])
		}
		return
	}
	for ; len(rows) >= 4; inverse, rows = inverse[4:], rows[4:] {
		r0, r1, r2, r3 := rows[0], rows[1], rows[2], rows[3]
		n := min(len(r0), len(r1), len(r2), len(r3))
		var s [4]float64
		for i := range n {
			s[0] += float64(r0[i])
			s[1] += float64(r1[i])
			s[2] += float64(r2[i])
			s[3] += float64(r3[i])
		}
		for i, row := range rows[:4] {
			inverse[i] = inverseSum(s[i], row[n:])
		}
	}
	for i, row := range rows {
		inverse[i] = inverseSum(0, row)
	}
}

// inverseSums8 is InverseSums of the first eight rows, for machines with vector kernels. No row is empty.
func inverseSums8(inverse []float32, rows [][]float32) {
	var first [8]*float32
	n := len(rows[0])
	for i, row := range rows[:8] {
		first[i], n = &row[0], min(n, len(row))
	}
	var s [8]float64
	blocks := n / 4
	if blocks > 0 {
		rowSums8(&first, blocks, &s)
	}
	for i, row := range rows[:8] {
		inverse[i] = inverseSum(s[i], row[4*blocks:])
	}
}

// inverseSum returns the inverse of sum plus a row's elements.
func inverseSum(sum float64, row []float32) float32 {
	for _, v := range row {
		sum += float64(v)
	}
	return float32(1 / sum)
}

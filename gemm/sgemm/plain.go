package sgemm

// tilePlain computes the kernels' chains in Go, on every machine.
func tilePlain(c []float32, stride, rows, cols int, a *rowPanel, b *colPanel, k int, add bool) {
	for i := range rows {
		row := c[i*stride:][:cols]
		for j := 0; j < len(row); j += 4 {
			var sums [4]float32
			if add {
				copy(sums[:], row[j:])
			}
			chain4(&sums, a[i*rowStep:][:k], b, j)
			copy(row[j:], sums[:])
		}
	}
}

// chain4 continues four chains, in columns j to j+3. Side by side they hide each other's latency, and one branch
// finds out whether any of them needs fma.
func chain4(sums *[4]float32, a []float32, b *colPanel, j int) {
	s0, s1, s2, s3 := sums[0], sums[1], sums[2], sums[3]
	for k, v := range a {
		b := (*[4]float32)(b[k][j:])
		t0, t1, t2, t3 := fma64(v, b[0], s0), fma64(v, b[1], s1), fma64(v, b[2], s2), fma64(v, b[3], s3)
		if mayBeHalfway(t0) || mayBeHalfway(t1) || mayBeHalfway(t2) || mayBeHalfway(t3) {
			s0, s1, s2, s3 = fma(v, b[0], s0), fma(v, b[1], s1), fma(v, b[2], s2), fma(v, b[3], s3)
		} else {
			s0, s1, s2, s3 = float32(t0), float32(t1), float32(t2), float32(t3)
		}
	}
	*sums = [4]float32{s0, s1, s2, s3}
}

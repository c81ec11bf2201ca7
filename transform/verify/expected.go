package verify

import "math"

// expected is the image of a pair's source in real arithmetic, before the lossy steps.
type expected struct {
	p      *pair
	im     *image
	scale  []float64 // factors of the source's inputs; nil for ones
	add    float64
	source []float32 // one row
}

// real reports whether values are computed, so that the sign of a zero has no meaning.
func (e *expected) real() bool {
	return e.scale != nil || e.add != 0 || e.p.aValues != nil || !e.p.f.IsFloat()
}

// row writes row n, without the constant, to dst. NaN and infinity are the source's.
func (e *expected) row(dst []float64, n int) {
	p, im := e.p, e.im
	from := place(im.row, n)
	p.decodeRow(e.source, p.a, from)
	rowFlip, rowExp := flag(im.rowFlip, n), number(im.rowExp, n)
	for k := range dst {
		j := place(im.col, k)
		v := float64(e.source[j])
		if v-v != 0 {
			dst[k] = v
			continue
		}
		if p.aValues != nil {
			v = p.aValues[from*p.cols+j]
		}
		if rowFlip != flag(im.colFlip, k) {
			v = -v
		}
		if exp := rowExp + number(im.colExp, k); exp != 0 {
			v = math.Ldexp(v, exp)
		}
		if e.scale != nil {
			v *= e.scale[p.input(from, j)]
		}
		dst[k] = v
	}
}

// stored writes row n, with the constant and rounded to the tensor's type, to dst.
func (e *expected) stored(dst []float32, n int) {
	row := make([]float64, len(dst))
	e.row(row, n)
	for k, v := range row {
		dst[k] = float32(v)
		if v-v == 0 && e.real() {
			dst[k] = e.p.f.Value(e.p.f.FromValue(float32(v + e.add)))
		}
	}
}

package cost

import "math"

// dot is the state of a tensor core's wires while it adds SumProducts products to an accumulator. The adders of a
// card are not published. Features of three stages improved the fit of an energy model to measurements: the first
// sums, the sums of all products, and the sums with the accumulator.
type dot struct {
	mant     []uint64 // mantissas of the products
	aligned  []uint64 // two's complement, aligned to the largest exponent
	negative []bool
	first    []int64 // the first sums, each aligned to its own largest exponent
	sum      int64
	largest  int32 // exponent
	total    int64 // sum with the accumulator, aligned to the larger of both

	exp, firstMax []int32
}

// newDots returns n dots of a datapath.
func newDots(p *Datapath, n int) []dot {
	k, groups := p.SumProducts, p.SumProducts/p.FirstSumProducts
	words, numbers := make([]uint64, 2*n*k), make([]int32, n*(k+groups))
	negative, first := make([]bool, n*k), make([]int64, n*groups)
	dots := make([]dot, n)
	for i := range dots {
		dots[i] = dot{mant: cut(&words, k), aligned: cut(&words, k), negative: cut(&negative, k),
			first: cut(&first, groups), exp: cut(&numbers, k), firstMax: cut(&numbers, groups)}
	}
	return dots
}

// cut removes the first n elements of a slice and returns them.
func cut[T any](from *[]T, n int) []T {
	part := (*from)[:n:n]
	*from = (*from)[n:]
	return part
}

// arithmetic holds the parameters of dots of a format.
type arithmetic struct {
	quad, window int   // Datapath's FirstSumProducts and AlignedBits
	top          int   // bits of a product's mantissa
	min          int32 // smallest exponent of float32 sums
}

func (d *decoder) arithmetic(p *Datapath) arithmetic {
	a := arithmetic{quad: p.FirstSumProducts, window: p.AlignedBits, top: 2*d.f.MantBits + 2}
	if d.f.Bias > 100 { // products of other formats are never so small
		const float32Bias, subnormal = 126, 24
		a.min = int32(2*d.f.Bias - float32Bias - subnormal)
	}
	return a
}

// set computes the dot product of two rows of elements and adds it to the accumulator acc. acc is in units of the elements' values.
func (d *dot) set(s, t []element, acc float64, a arithmetic) {
	n := len(d.mant)
	s, t = s[:n], t[:n]
	mant, aligned, negative, exp := d.mant[:n], d.aligned[:n], d.negative[:n], d.exp[:n]
	clear(aligned)
	d.sum, d.largest, d.total = 0, 0, 0
	for q, k := 0, 0; q < len(d.first); q++ {
		largest := int32(0)
		for end := k + a.quad; k < end && k < n; k++ {
			m := uint64(s[k].mant) * uint64(t[k].mant)
			mant[k], negative[k] = m, false
			if m == 0 {
				continue
			}
			negative[k] = s[k].negative != t[k].negative
			exp[k] = s[k].exp + t[k].exp
			largest = max(largest, exp[k], a.min)
		}
		d.first[q], d.firstMax[q] = 0, largest
		d.largest = max(d.largest, largest)
	}
	common := d.largest
	if acc != 0 {
		_, e := math.Frexp(acc)
		common = max(common, int32(e+1-a.top))
		d.total = int64(math.Ldexp(acc, a.window-a.top-int(common)))
	}
	mask := uint64(1)<<(a.window+2) - 1
	for q, k := 0, 0; q < len(d.first); q++ {
		for end := k + a.quad; k < end && k < n; k++ {
			m := mant[k]
			if m == 0 {
				continue
			}
			right, sign := a.top-a.window-int(exp[k]), int64(1)
			if negative[k] {
				sign = -1
			}
			v := sign * align(m, int(d.largest)+right)
			aligned[k] = uint64(v) & mask
			d.sum += v
			d.first[q] += sign * align(m, int(d.firstMax[q])+right)
			d.total += sign * align(m, int(common)+right)
		}
	}
}

func align(m uint64, right int) int64 {
	switch {
	case right < 0:
		return int64(m << -right)
	case right < 64:
		return int64(m >> right)
	}
	return 0
}

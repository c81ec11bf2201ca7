package cost

import "math"

const (
	// depth is how many products along K are added up together, and quad how many of them first.
	depth = 16
	quad  = 4
	// window is how many bits of an aligned product are kept: float32's, and two to guard them.
	window = 26
)

// dot is what a tensor core's wires hold while it adds depth products to an accumulator. Which
// adders a card has is not published: sums of quads, of all depth, and with the accumulator are
// the points at which an energy model that is fitted to measurements was seen to gain.
type dot struct {
	mant     [depth]uint64 // products' mantissas
	aligned  [depth]uint64 // two's complement, aligned to the largest exponent
	negative [depth]bool
	quads    [depth / quad]int64 // each aligned to its own largest exponent
	sum      int64
	largest  int32 // exponent
	total    int64 // with the accumulator, aligned to the larger of both
}

// arithmetic is what dots of a format need to know.
type arithmetic struct {
	top int   // bits of a product's mantissa
	min int32 // the smallest exponent that float32 sums still hold
}

func (d *decoder) arithmetic() arithmetic {
	a := arithmetic{top: 2*d.f.MantBits + 2}
	if d.f.Bias > 100 { // products of other formats never become so small
		const float32Bias, subnormal = 126, 24
		a.min = int32(2*d.f.Bias - float32Bias - subnormal)
	}
	return a
}

// set computes a dot of two rows of lanes and what was accumulated before, in units of lanes' values.
func (d *dot) set(s, t *[depth]lane, acc float64, a arithmetic) {
	*d = dot{}
	var exp [depth]int32
	var quadMax [depth / quad]int32
	for k := range depth {
		m := uint64(s[k].mant) * uint64(t[k].mant)
		if m == 0 {
			continue
		}
		d.mant[k] = m
		d.negative[k] = s[k].negative != t[k].negative
		exp[k] = s[k].exp + t[k].exp
		quadMax[k/quad] = max(quadMax[k/quad], exp[k], a.min)
	}
	d.largest = max(quadMax[0], quadMax[1], quadMax[2], quadMax[3])
	common := d.largest
	if acc != 0 {
		_, e := math.Frexp(acc)
		common = max(common, int32(e+1-a.top))
		d.total = int64(math.Ldexp(acc, window-a.top-int(common)))
	}
	for k := range depth {
		m := d.mant[k]
		if m == 0 {
			continue
		}
		shift := func(to int32) int64 {
			v := int64(align(m, int(to-exp[k])+a.top-window))
			if d.negative[k] {
				return -v
			}
			return v
		}
		v := shift(d.largest)
		d.aligned[k] = uint64(v) & (1<<(window+2) - 1)
		d.sum += v
		d.quads[k/quad] += shift(quadMax[k/quad])
		d.total += shift(common)
	}
}

func align(m uint64, right int) uint64 {
	switch {
	case right < 0:
		return m << -right
	case right < 64:
		return m >> right
	}
	return 0
}

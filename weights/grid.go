package weights

import (
	"encoding/binary"
	"math"
)

// GridExponent returns the exponent of the power of two that is nearest to v by ratio; 0 if v is not positive or is infinite.
// The pass grid=S calls it with the quotient of a tensor's standard deviation and S.
func GridExponent(v float64) int {
	if !(v > 0) || math.IsInf(v, 1) {
		return 0
	}
	fraction, e := math.Frexp(v)
	if fraction < math.Sqrt2/2 {
		e--
	}
	return e
}

// Grid rounds values of one format to multiples of one power of two.
type Grid struct {
	f    Format
	sign uint32
	max  uint32
	mant int
	// full is the exponent field from which on all mantissa bits are kept; each smaller exponent drops one more bit.
	full int
	exp  int        // the step is 2^exp
	all  *[256]byte // the result for every value of an 8-bit format; else nil
	// place is, for BF16, a float32 whose unit in the last place is the step; 0 if float32's exponents do not reach that far.
	place float32
}

// Grid returns the grid of multiples of 2^exp; exp is within ±1000.
func (f Format) Grid(exp int) *Grid {
	g := &Grid{f, f.SignMask(), f.MaxFinite, f.MantBits, exp + f.Bias + f.MantBits, exp, nil, 0}
	if f.DType == BF16 && exp >= -100 && exp <= 100 {
		g.place = float32(math.Ldexp(1.5, exp+23))
	}
	if f.Bits == 8 {
		g.all = new([256]byte)
		for b := range g.all {
			g.all[b] = byte(g.Nearest(uint32(b)))
		}
	}
	return g
}

// Apply rounds all elements of data to the nearest multiple, in place.
func (g *Grid) Apply(data []byte) {
	switch {
	case g.all != nil:
		for i, b := range data {
			data[i] = g.all[b]
		}
	case g.place != 0:
		g.applyBF16(data)
	case g.f.Bits == 16:
		for ; len(data) >= 2; data = data[2:] {
			binary.LittleEndian.PutUint16(data, uint16(g.Nearest(uint32(binary.LittleEndian.Uint16(data)))))
		}
	default:
		for ; len(data) >= 4; data = data[4:] {
			binary.LittleEndian.PutUint32(data, g.Nearest(binary.LittleEndian.Uint32(data)))
		}
	}
}

// applyBF16 rounds by adding and subtracting place: float32 rounds the sum to its last place, ties to even. Values above
// place are multiples already, or not finite.
func (g *Grid) applyBF16(data []byte) {
	whole := uint32(g.full) << g.mant
	for ; len(data) >= 2; data = data[2:] {
		b := uint32(binary.LittleEndian.Uint16(data))
		if b&^g.sign < whole {
			v := float32(math.Float32frombits(b<<16)+g.place) - g.place // the conversion prevents fused or wider arithmetic
			binary.LittleEndian.PutUint16(data, uint16(math.Float32bits(v)>>16))
		}
	}
}

// Nearest returns the multiple of the step that is nearest to b, ties to even, and at most the largest finite magnitude. NaN
// and infinity do not change; zeros become positive. A value whose spacing in the format is at least the step is a multiple
// already.
func (g *Grid) Nearest(b uint32) uint32 { // on bits; byArithmetic is the reference
	mag := b &^ g.sign
	exp := int(mag >> g.mant)
	if mag > g.max {
		return b
	}
	if exp == 0 || !g.f.IsFloat() {
		return g.byArithmetic(b)
	}
	unit := uint32(1) << g.mant
	var r uint32
	switch drop := g.full - exp; {
	case drop <= 0:
		return b
	case drop < g.mant: // the multiples of the step in this binade differ in bits above drop
		step := uint32(1) << drop
		r = (mag + step/2 - 1 + mag>>drop&1) &^ (step - 1)
		if r > g.max {
			r = mag &^ (step - 1)
		}
	case drop == g.mant: // between the step and twice the step; ties go to twice the step, which is even
		r = mag &^ (unit - 1)
		if mag&(unit-1) >= unit/2 && r+unit <= g.max {
			r += unit
		}
	case drop == g.mant+1 && mag&(unit-1) != 0: // more than half a step
		r = mag&^(unit-1) + unit
		if r > g.max {
			r = 0
		}
	}
	if r == 0 {
		return 0 // one zero, not two
	}
	return b&g.sign | r
}

// byArithmetic is Nearest by division and multiplication.
func (g *Grid) byArithmetic(b uint32) uint32 {
	if !g.f.Finite(b) {
		return b
	}
	v, limit := float64(g.f.Value(b)), float64(g.f.Value(g.f.MaxFinite))
	if !g.f.IsFloat() && v < 0 {
		limit++ // −128
	}
	q := math.RoundToEven(math.Ldexp(v, -g.exp))
	if largest := math.Floor(math.Ldexp(limit, -g.exp)); math.Abs(q) > largest {
		q = math.Copysign(largest, v)
	}
	if q == 0 {
		return 0
	}
	return g.f.FromValue(float32(math.Ldexp(q, g.exp)))
}

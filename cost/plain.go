package cost

import (
	"math/bits"

	"github.com/lowtoggle/lowtoggle/weights"
)

// addPlain is the definition of a tally, element by element: for what does not fill a group, and
// for tests to hold the fast path against.
func (t *tally) addPlain(f weights.Format, cur, before, above []byte) {
	for i := range len(cur) * 8 / f.Bits {
		b := f.Elem(cur, i)
		t.ones.addBits(f, b)
		zero := f.Value(b) == 0
		if before != nil {
			o := f.Elem(before, i)
			t.memory.addBits(f, b^o)
			if zero && f.Value(o) == 0 {
				t.zerosBefore++
			}
		}
		if above != nil {
			o := f.Elem(above, i)
			t.rows.addBits(f, b^o)
			if zero && f.Value(o) == 0 {
				t.zerosAbove++
			}
		}
		switch {
		case zero:
			t.zeros++
		case f.Subnormal(b):
			t.subnormal++
		case f.Finite(b):
		case f.HasInf() && b&f.MantMask() == 0:
			t.inf++
		default:
			t.nan++
		}
	}
}

// addBits counts the bits set in one element.
func (c *Fields) addBits(f weights.Format, b uint32) {
	c.Sign += uint64(bits.OnesCount32(b & f.SignMask()))
	c.Exponent += uint64(bits.OnesCount32(b & f.ExpMask()))
	c.Mantissa += uint64(bits.OnesCount32(b & f.MantMask()))
}

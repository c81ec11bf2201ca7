package cost

import "github.com/lowtoggle/lowtoggle/weights"

// lanes holds a format's masks for SIMD within a register: the same bits in each of the two, four or eight elements
// of a 64-bit word. A sum of two lanes never carries into the next lane, because every addend leaves room in the
// lane's top bit.
type lanes struct {
	format weights.Format
	size   int // bytes of an element

	sign, exp, magnitude uint64
	// ordinaryOnes and ordinaryZeros are exponent bits that are set and clear in every element of the common range
	// [2⁻⁶³, 2) with eight exponent bits. If all words of a group match, the group has no special values. Formats
	// with fewer exponent bits have no such range: both masks then have the same bit, and no group matches.
	ordinaryOnes, ordinaryZeros uint64

	// valueSign is the sign bit if it is part of the value (I8), else 0.
	valueSign uint64
	// Masks for an element's bits b: b&magnitude + magnitude reaches the top bit if the value is not zero; b&normal +
	// normal, if it is also not subnormal; b&magnitude + finiteRoom, if it is not finite; b&magnitude + nanRoom, if
	// it is NaN.
	normal, finiteRoom, nanRoom uint64
}

func newLanes(f weights.Format) *lanes {
	every := func(b uint32) uint64 {
		w := uint64(b)
		for n := f.Bits; n < 64; n *= 2 {
			w |= w << n
		}
		return w
	}
	below := f.SignMask() - 1 // all bits except the sign
	l := &lanes{
		format: f, size: f.Bits / 8,
		sign: every(f.SignMask()), exp: every(f.ExpMask()), magnitude: every(below),
		ordinaryOnes: every(f.SignMask()), ordinaryZeros: every(f.SignMask()),
		normal:     every(f.ExpMask()),
		finiteRoom: every(below - f.MaxFinite), nanRoom: every(below - f.MaxFinite),
	}
	if f.ExpBits == 8 {
		l.ordinaryOnes, l.ordinaryZeros = every(f.SignMask()>>2), every(f.SignMask()>>1)
	}
	if !f.IsFloat() {
		l.valueSign, l.normal = l.sign, l.magnitude
	}
	if f.HasInf() {
		l.nanRoom = every(below - f.MaxFinite - 1)
	}
	return l
}

// zeros marks the lanes of w with the value zero, in their top bits.
func (l *lanes) zeros(w uint64) uint64 {
	return ^(w&l.magnitude + l.magnitude | w&l.valueSign) & l.sign
}

// notNormal marks the lanes of w that are zero or subnormal.
func (l *lanes) notNormal(w uint64) uint64 {
	return ^(w&l.normal + l.normal | w&l.valueSign) & l.sign
}

// notFinite marks the lanes of w that are infinite or NaN.
func (l *lanes) notFinite(w uint64) uint64 { return (w&l.magnitude + l.finiteRoom) & l.sign }

// nans marks the lanes of w that are NaN.
func (l *lanes) nans(w uint64) uint64 { return (w&l.magnitude + l.nanRoom) & l.sign }

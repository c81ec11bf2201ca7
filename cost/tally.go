package cost

import (
	"math/bits"

	"github.com/lowtoggle/lowtoggle/weights"
)

// tally is a sum over elements. Each element is counted with the element before it in memory and the element above it
// (the previous row, same column), if they exist. Every count of an Activity, except for borders at a tensor's edge,
// is such a sum, so tallies of parts can be added in any order.
type tally struct {
	rows, memory, ones  Fields
	zeros               uint64
	zerosBefore         uint64 // zeros preceded by a zero
	zerosAbove          uint64 // zeros below a zero
	nan, inf, subnormal uint64
}

// merge adds another tally's counts.
func (t *tally) merge(o tally) {
	t.rows.add(o.rows)
	t.memory.add(o.memory)
	t.ones.add(o.ones)
	t.zeros += o.zeros
	t.zerosBefore += o.zerosBefore
	t.zerosAbove += o.zerosAbove
	t.nan += o.nan
	t.inf += o.inf
	t.subnormal += o.subnormal
}

// add counts the elements of cur. before and above have cur's length, or are nil if cur's elements have no such
// neighbours.
func (t *tally) add(l *lanes, cur, before, above []byte) {
	n := t.addBlocks(l, cur, before, above)
	t.addWords(l, cur[n:], from(before, n), from(above, n))
}

// addWords is add in plain Go, the counterpart of addBlocks.
func (t *tally) addWords(l *lanes, cur, before, above []byte) {
	t.addGroups(l, groups(cur), groups(before), groups(above))
	n := len(cur) / groupBytes * groupBytes
	t.addPlain(l.format, cur[n:], from(before, n), from(above, n))
}

// from returns b[n:], or nil if b is nil.
func from(b []byte, n int) []byte {
	if b == nil {
		return nil
	}
	return b[n:]
}

// addGroups is a fast addPlain for whole groups.
func (t *tally) addGroups(l *lanes, cur, before, above []group) {
	var ones, memory, rows positional
	for i := 0; i < len(cur); i += blockGroups {
		end := min(i+blockGroups, len(cur))
		special := ones.addOnes(l, cur[i:end])
		if before != nil {
			memory.addXor(l, cur[i:end], before[i:end])
		}
		if above != nil {
			rows.addXor(l, cur[i:end], above[i:end])
		}
		for ; special != 0; special &= special - 1 {
			j := i + bits.TrailingZeros64(special)
			t.addSpecials(l, &cur[j], at(before, j), at(above, j))
		}
	}
	t.ones.add(ones.total(l))
	t.memory.add(memory.total(l))
	t.rows.add(rows.total(l))
}

// at returns &g[i], or nil if g is nil.
func at(g []group, i int) *group {
	if g == nil {
		return nil
	}
	return &g[i]
}

// addSpan counts bytes [lo, hi) of a whole tensor. Both are multiples of an element's size.
func (t *tally) addSpan(l *lanes, data []byte, rowBytes, lo, hi int) {
	if lo == 0 && hi > 0 {
		t.add(l, data[:l.size], nil, nil)
		lo = l.size
	}
	if end := min(hi, rowBytes); lo < end {
		t.add(l, data[lo:end], data[lo-l.size:end-l.size], nil)
		lo = end
	}
	if lo < hi {
		t.add(l, data[lo:hi], data[lo-l.size:hi-l.size], data[lo-rowBytes:hi-rowBytes])
	}
}

// zerosIn returns the number of zeros in data.
func (l *lanes) zerosIn(data []byte) uint64 {
	var t tally
	t.add(l, data, nil, nil)
	return t.zeros
}

// activity returns the counts of a whole tensor, given the zeros of its first and last rows. Runs and borders are
// derived from pairs: a run starts at each zero that no zero precedes, and each vertical pair has two zeros, one (a
// border) or none.
func (t *tally) activity(l *lanes, rows, cols int, firstZeros, lastZeros uint64) Activity {
	if rows == 0 {
		cols = 0 // an empty tensor is 0 by 0
	}
	return Activity{
		DType: l.format.DType, Rows: rows, Cols: cols, Elements: uint64(rows) * uint64(cols),
		RowToggles: t.rows, MemoryToggles: t.memory, Ones: t.ones,
		Zeros:       t.zeros,
		ZeroRuns:    t.zeros - t.zerosBefore,
		ZeroBorders: 2*t.zeros - firstZeros - lastZeros - 2*t.zerosAbove,
		NaN:         t.nan, Inf: t.inf, Subnormal: t.subnormal,
	}
}

// addPlain is the definition of a tally, element by element. It counts the elements that do not fill a group. Tests
// compare the fast path with addPlain.
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

// addBits counts the set bits of one element.
func (c *Fields) addBits(f weights.Format, b uint32) {
	c.Sign += uint64(bits.OnesCount32(b & f.SignMask()))
	c.Exponent += uint64(bits.OnesCount32(b & f.ExpMask()))
	c.Mantissa += uint64(bits.OnesCount32(b & f.MantMask()))
}
